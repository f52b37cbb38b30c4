/** System calls made by native code, for when Deno's own permissions were overcome. Refused means refused by the kernel. */

let libc;
const REFUSED = new Map([[1, "EPERM"], [13, "EACCES"], [38, "ENOSYS"]]);

function call(number, ...values) {
  libc ??= Deno.dlopen("libc.so.6", {
    syscall: { parameters: Array(7).fill("i64"), result: "i64" },
    __errno_location: { parameters: [], result: "pointer" },
  }).symbols;
  const given = [number, ...values, ...Array(6).fill(0)].slice(0, 7).map(BigInt);
  const result = Number(libc.syscall(...given));
  const errno = result === -1 ? new Deno.UnsafePointerView(libc.__errno_location()).getInt32() : 0;
  if (REFUSED.has(errno)) throw new Error(REFUSED.get(errno));
  return errno ? `reached the kernel, which found errno ${errno}` : `returned ${result}`;
}
const pointer = (bytes) => Number(Deno.UnsafePointer.value(Deno.UnsafePointer.of(bytes)));
const text = (value) => pointer(new TextEncoder().encode(`${value}\0`));
const limit = () => pointer(new BigUint64Array([1n << 40n, 1n << 40n]));

/** Every call that shall be refused, by name: `at.calls` holds numbers. Arguments are all zero. */
export const sweep = (at) => {
  const reached = {};
  for (const [name, number] of Object.entries(at.calls)) {
    try {
      reached[name] = call(number);
    } catch {
      // refused
    }
  }
  return reached;
};

export const kernel = {
  native_open: (at) => call(at.numbers.openat, -100, text(at.secret), 0),
  native_open_link: (at) => call(at.numbers.openat, -100, text(at.link), 0),
  native_create: (at) => call(at.numbers.openat, -100, text(`${at.folder}/native`), 0o101, 0o644),
  native_unlink: (at) => call(at.numbers.unlinkat, -100, text(at.victim), 0),
  native_execute: (at) => call(at.numbers.execve, text("/bin/true"), 0, 0),
  native_socket: (at) => call(at.calls.socket, 2, 1, 0),
  native_netlink: (at) => call(at.calls.socket, 16, 3, 0),
  native_unix: (at) => call(at.calls.socket, 1, 1, 0),
  native_fork: (at) => call(at.numbers.clone, 17),
  native_clone3: (at) => call(at.numbers.clone3, pointer(new BigUint64Array(11)), 88),
  native_kill: (at) => call(at.calls.kill, at.pid, 0),
  native_kill_thread: (at) => call(at.numbers.tgkill, at.pid, at.pid, 0),
  native_trace: (at) => call(at.calls.ptrace, 0x4206, at.pid),
  native_read_memory: (at) => call(at.calls.process_vm_readv, at.pid),
  native_limit_other: (at) => call(at.numbers.prlimit, at.pid, 7, limit()),
  native_raise_limit: (at) => call(at.numbers.prlimit, 0, 2, limit()),
  native_outlive: (at) => call(at.numbers.prctl, 1, 0),
  native_user_namespace: (at) => call(at.calls.unshare, 0x10000000),
  native_memory_file: (at) => call(at.calls.memfd_create, text("x"), 0),
  native_stat: (at) => call(at.numbers.statx, -100, text(at.secret), 0, 0xfff, pointer(new Uint8Array(256))),
  native_getppid: (at) => call(at.numbers.getppid),
};
