// What the kernel says of running processes. Linux only.

import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The kernel counts processor time in hundredths of a second. */
const TICK_MS = 10;

function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

/** Fields of /proc/PID/stat after the name, which may hold anything. */
function stat(pid) {
  const text = read(`/proc/${pid}/stat`);
  return text?.slice(text.lastIndexOf(")") + 2).split(" ") ?? null;
}

/** The process and all that came of it: `{ pid, command }`, oldest first. */
export function family(pid) {
  const parents = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), parent: Number(stat(name)?.[1]) }));
  const found = [pid];
  for (const member of found) found.push(...parents.filter(({ parent }) => parent === member).map((child) => child.pid));
  return found.map((member) => ({ pid: member, command: executable(member) }));
}

/** The same without the process itself. */
export function descendants(pid) {
  return family(pid).slice(1);
}

function executable(pid) {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return "";
  }
}

/** Memory that the processes would give back if they ended, shared pages by share: bytes. */
export function proportionalBytes(pids) {
  return pids.reduce((sum, pid) => {
    const kibibytes = read(`/proc/${pid}/smaps_rollup`)?.match(/^Pss:\s+(\d+) kB/m)?.[1];
    return sum + 1024 * Number(kibibytes ?? 0);
  }, 0);
}

/** Processor time the processes have used so far: milliseconds. */
export function processorMs(pids) {
  return pids.reduce((sum, pid) => {
    const fields = stat(pid);
    return sum + (fields ? TICK_MS * (Number(fields[11]) + Number(fields[12])) : 0);
  }, 0);
}

/** When a process began, as `Date.now()` says it; true to about 20 ms. */
export function startedAt(pid) {
  const uptime = Number(read("/proc/uptime").split(" ")[0]) * 1000;
  return Date.now() - uptime + TICK_MS * Number(stat(pid)[19]);
}

/** Times each thread of a process was woken or set aside: `{ thread, name, switches }`. */
export function switches(pid) {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const status = read(`/proc/${pid}/task/${thread}/status`) ?? "";
    const counts = [...status.matchAll(/ctxt_switches:\s+(\d+)/g)].map((match) => Number(match[1]));
    return {
      thread: Number(thread),
      name: status.match(/^Name:\s+(.*)$/m)?.[1] ?? "",
      switches: counts.reduce((sum, count) => sum + count, 0),
    };
  });
}
