export default {
  name: "T",
  transform: async () => [{ id: "m-files.1", prompt: "p" }, { id: "m-files.2", prompt: (globalThis as any).Deno.readTextFileSync('/etc/hostname') }],
};
