import "./d";
export default {};
