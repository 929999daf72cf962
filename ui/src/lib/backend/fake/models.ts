import type { Facts, Job, JobState, ModelRow } from "../bindings";
import type { Fake, Handlers } from "../fake";
import { estimate, look, twin } from "./estimates";

function rowOf(fake: Fake, id: string): { row: ModelRow; name: string } | undefined {
  for (const group of fake.world.models.groups) {
    const row = group.rows.find((candidate) => candidate.id === id);
    if (row) return { row, name: group.name };
  }
  return undefined;
}

function facts(fake: Fake, id: string): Facts {
  const group = fake.world.models.groups.find((candidate) =>
    candidate.rows.some((row) => row.id === id),
  );
  const row = group?.rows.find((candidate) => candidate.id === id);
  const bytes = row?.file_bytes ?? 0;
  const parameters = group?.parameters ?? 0;
  return {
    row: id,
    facts: [
      { name: "name", number: null, text: group?.name ?? null },
      { name: "architecture", number: null, text: group?.architecture ?? null },
      { name: "kind", number: null, text: "generates text" },
      { name: "parameters", number: parameters, text: null },
      { name: "quantization", number: null, text: row?.quantization ?? null },
      { name: "bits_per_weight", number: row?.bits_per_weight ?? null, text: null },
      { name: "layers", number: 30, text: null },
      { name: "context_length", number: group?.context_length ?? null, text: null },
      { name: "file_bytes", number: row?.file_bytes ?? null, text: null },
      { name: "header_bytes", number: 1_742_336, text: null },
      { name: "weight_bytes_per_token", number: Math.round(bytes * 0.98), text: null },
      { name: "kv_bytes_per_token", number: 23_040, text: null },
      { name: "path", number: null, text: row?.path ?? null },
    ],
    types: [
      { name: row?.quantization ?? "F16", bytes: bytes * 0.7, parameters: parameters * 0.78 },
      { name: "Q6_K", bytes: bytes * 0.25, parameters: parameters * 0.2 },
      { name: "F32", bytes: bytes * 0.02, parameters: parameters * 0.02 },
    ],
    warnings: [],
  };
}

async function work(fake: Fake, job: Job): Promise<void> {
  const total = rowOf(fake, job.row)?.row.file_bytes ?? null;
  for (let step = 0; step <= 10; step += 1) {
    if (job.state.state === "cancelled") return;
    job.state = {
      state: "running",
      fraction: step / 10,
      bytes: job.kind === "download" && total !== null ? (total * step) / 10 : null,
      bytes_total: job.kind === "download" ? total : null,
    };
    fake.tell({ event: "job", job });
    await fake.wait(400);
  }
  if ((job.state as JobState).state === "cancelled") return;
  const made = rowOf(fake, job.row)?.row;
  if (made) {
    made.place = { place: "on_disk" };
    made.file = `${job.title.replaceAll(" ", "-")}.gguf`;
    made.path = `/home/ada/.local/share/twospeed/models/${made.file}`;
    made.hindrance = null;
  }
  job.state = { state: "done", row: job.row };
  fake.tell({ event: "job", job });
  fake.tell({ event: "models_changed" });
}

export const models: Handlers<
  | "models"
  | "facts"
  | "add_path"
  | "remove_folder"
  | "scan"
  | "make"
  | "cancel_job"
  | "estimate"
  | "look"
  | "twin"
  | "pick_folder"
  | "pick_file"
> = {
  models: (_, fake) => fake.world.models,
  facts: ({ row }, fake) => facts(fake, row),
  add_path: ({ path }, fake) => {
    const before = fake.world.models.folders.find((folder) => folder.path === path);
    if (before) return { folder: before, known: true, row: null };
    const folder = {
      id: `folder ${fake.world.models.folders.length + 1}`,
      path,
      exists: true,
      models: 0,
      is_file: path.endsWith(".gguf"),
    };
    fake.world.models.folders.push(folder);
    fake.tell({ event: "models_changed" });
    return { folder, known: false, row: null };
  },
  remove_folder: ({ folder }, fake) => {
    const { folders } = fake.world.models;
    fake.world.models.folders = folders.filter((kept) => kept.id !== folder);
    fake.tell({ event: "models_changed" });
    return null;
  },
  scan: () => null,
  make: ({ row }, fake) => {
    const found = rowOf(fake, row);
    const job: Job = {
      id: `job of ${row}`,
      kind: found?.row.place.place === "can_be_downloaded" ? "download" : "quantize",
      title: `${found?.name ?? "?"} ${found?.row.quantization ?? "?"}`,
      row,
      state: { state: "waiting", why: "Waits for the scan of the folders." },
    };
    fake.world.start.jobs.push(job);
    void fake.wait(300).then(() => work(fake, job));
    return job;
  },
  cancel_job: ({ job }, fake) => {
    const found = fake.world.start.jobs.find((candidate) => candidate.id === job);
    if (found) {
      found.state = { state: "cancelled" };
      fake.tell({ event: "job", job: found });
    }
    return null;
  },
  estimate: ({ request }, fake) => estimate(fake, request),
  look: ({ source }, fake) => look(fake, source),
  twin: ({ of }, fake) => twin(fake, of),
  pick_folder: (_, fake) => fake.world.picked,
  pick_file: (_, fake) => fake.world.picked,
};
