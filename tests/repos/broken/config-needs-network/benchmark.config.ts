export default await (await fetch("http://127.0.0.1:9/")).json();
