import { readFileSync } from "fs";
export default { name: "E", transform: () => [{ id: "e.1", prompt: `${readFileSync("/etc/hostname")}` }] };
