// Made from the Rust types by `npm run bindings`; do not edit.

/**
 * What adding a path came to.
 */
export type Added = { 
/**
 * The folder or file as it stands in the list.
 */
folder: Folder, 
/**
 * It was in the list before.
 */
known: boolean, 
/**
 * Row of Models, where it is one model file.
 */
row: string | null, };

/**
 * How far predictions are from those of the base model.
 */
export type AgainstBaseModel = { 
/**
 * Perplexity of the base model.
 */
perplexity: number, 
/**
 * Mean Kullback-Leibler divergence, nats.
 */
divergence: number, 
/**
 * Its standard error.
 */
error: number, 
/**
 * Share of tokens whose likeliest prediction is the same, 0 to 1.
 */
same_top: number, };

/**
 * What happened without being asked for. Never said inside a timed section.
 */
export type AppEvent = { "event": "models_changed" } | { "event": "results_changed" } | { "event": "job", 
/**
 * As it is now.
 */
job: Job, } | { "event": "opened", 
/**
 * Ids of the rows in Models, in order; empty where only folders were added.
 */
rows: Array<string>, } | { "event": "drop_hover", 
/**
 * They are there now.
 */
over: boolean, } | { "event": "machine", 
/**
 * As it is now.
 */
machine: MachineCard, } | { "event": "notice", 
/**
 * One sentence.
 */
message: string, 
/**
 * It is a failure.
 */
failed: boolean, };

/**
 * The machine right after a sample; unknown is `None`.
 */
export type Around = { 
/**
 * Mean clock, Hz.
 */
clock_hz: number | null, 
/**
 * Highest temperature, degrees Celsius.
 */
temperature_c: number | null, 
/**
 * Power of the processor while it was timed, watts.
 */
watts: number | null, };

/**
 * What expected speeds rest on.
 */
export type BasisView = { 
/**
 * The calibration they come from; `None` = none holds, and only ceilings are known.
 */
calibrated: CalibratedAt | null, 
/**
 * Why none holds, a few words: `not calibrated for 4 threads (for 2 it is)`.
 */
why_not: string | null, 
/**
 * Own runs that corrected them.
 */
corrected_by_runs: number, };

/**
 * Both speeds, tokens per second, as far as they matter.
 */
export type BothSpeeds = { 
/**
 * Prefill.
 */
prefill: number | null, 
/**
 * Decode.
 */
decode: number | null, };

/**
 * What a layer keeps.
 */
export type CacheKind = "full" | "window" | "indexer" | "compressed";

/**
 * The cache of the layers of one kind: layers x cells x bytes of a row.
 */
export type CachePartView = { 
/**
 * What these layers keep.
 */
kind: CacheKind, 
/**
 * How many they are.
 */
layers: number, 
/**
 * Cells of each, all streams together.
 */
cells: number, 
/**
 * Heads of keys and values; `None` where the layers differ, or a row is no whole number of
 * heads.
 */
kv_heads: number | null, 
/**
 * Elements of one key in a row; `None` where the layers differ.
 */
key_elements: number | null, 
/**
 * Elements of one value; 0 where only keys are kept.
 */
value_elements: number | null, 
/**
 * Bytes of a cell of one layer, the mean where the layers differ.
 */
cell_bytes: number, 
/**
 * All of it, bytes.
 */
bytes: number, };

/**
 * Which calibration.
 */
export type CalibratedAt = { 
/**
 * When.
 */
at: string, 
/**
 * CPU variant.
 */
variant: string, 
/**
 * Threads that computed.
 */
threads: number, };

/**
 * What this machine's engine was measured to do.
 */
export type CalibrationView = { 
/**
 * When.
 */
at: string, 
/**
 * `CPU`.
 */
backend: string, 
/**
 * CPU variant.
 */
variant: string, 
/**
 * Threads that computed.
 */
threads: number, 
/**
 * llama.cpp's build number.
 */
build: number, 
/**
 * Why it does not stand for runs as they are set up now, a few words; `None` = it does.
 */
does_not_hold: string | null, 
/**
 * Read speed by size of the buffer, the smallest first.
 */
reads: Array<ReadAt>, 
/**
 * Speed of matrices by tensor type, as they lie in the list of types.
 */
rates: Array<MatrixRate>, 
/**
 * Size of the last-level cache, bytes.
 */
last_level_cache_bytes: number | null, 
/**
 * Tokens of a micro-batch that prefill's rates hold for.
 */
ubatch: number, };

/**
 * Why two results may not be comparable.
 */
export type Caution = { "caution": "drift", 
/**
 * One result, to show.
 */
one: string, 
/**
 * The other, to show.
 */
other: string, 
/**
 * Change of the fixed kernel, slower / faster - 1.
 */
relative: number, } | { "caution": "machines" } | { "caution": "settings", 
/**
 * The settings that differ, to show.
 */
names: Array<string>, } | { "caution": "warned", 
/**
 * The result, to show.
 */
result: string, 
/**
 * What it carries.
 */
warnings: Array<Warning>, };

/**
 * What goes to the clipboard.
 */
export type CopyWhat = "picture" | "table";

/**
 * What a test does.
 */
export type Doing = { "doing": "loading", 
/**
 * From 0 to 1.
 */
fraction: number, } | { "doing": "warmup" } | { "doing": "depth", 
/**
 * The state was kept from before, so nothing is computed.
 */
restored: boolean, } | { "doing": "text", 
/**
 * Chunks that are done.
 */
done: number, 
/**
 * All chunks.
 */
chunks: number, } | { "doing": "timing", 
/**
 * From 1.
 */
number: number, 
/**
 * For `painted`.
 */
ticket: number, };

/**
 * The settings that memory and speeds depend on.
 */
export type EstimateAt = { 
/**
 * Tokens of context, of all users together.
 */
context: number, 
/**
 * People at once, each with a part of the context.
 */
users: number, 
/**
 * Type of keys and values: `f16`, `q8_0`, `q4_0`.
 */
cache: string, 
/**
 * `auto`, `on`, `off`.
 */
flash_attention: string, };

/**
 * What is asked.
 */
export type EstimateRequest = { 
/**
 * A row of Models, or a header that was looked at.
 */
of: string, 
/**
 * With these settings.
 */
at: EstimateAt, 
/**
 * The engine is asked what it would allocate, which takes a moment; otherwise its answer is
 * taken only where it is known already.
 */
exact: boolean, };

/**
 * What a model takes with these settings and how fast it is expected to be. Nothing of it was
 * measured with this model, except where the twin says so of its own.
 */
export type EstimateView = { 
/**
 * As it was asked.
 */
of: string, 
/**
 * As it was asked.
 */
at: EstimateAt, 
/**
 * Memory by part.
 */
memory: MemoryView, 
/**
 * How the cache comes to its size, one entry for each kind of layer.
 */
cache: Array<CachePartView>, 
/**
 * What one cached token takes, bytes.
 */
cache_bytes_per_token: number | null, 
/**
 * Why the engine refuses these settings, a sentence.
 */
refused: string | null, 
/**
 * Weights that a decoded token reads, bytes.
 */
weight_bytes_per_token: number | null, 
/**
 * What decode of one user cannot exceed here, tokens per second.
 */
decode_ceiling: number | null, 
/**
 * Speeds with an empty cache, and with one that is nearly full.
 */
speeds: Array<SpeedsAt>, 
/**
 * Where the time of one decoded token of each user goes with an empty cache; empty = not
 * calibrated.
 */
decode_parts: Array<TimePart>, 
/**
 * Where the time of a prompt goes.
 */
prefill_parts: Array<TimePart>, 
/**
 * What the expected speeds rest on.
 */
basis: BasisView, 
/**
 * What a twin of it ran at.
 */
twin: TwinView | null, 
/**
 * What a reader should know, sentences.
 */
notes: Array<string>, };

/**
 * Why a measured speed may lie outside the band.
 */
export type ExpectedReason = { "reason": "disturbed" } | { "reason": "threads", 
/**
 * Threads that ran.
 */
ran: number, 
/**
 * Threads of the calibration.
 */
calibrated: number, } | { "reason": "variant", 
/**
 * The one that ran.
 */
ran: string, 
/**
 * The one of the calibration.
 */
calibrated: string, } | { "reason": "build", 
/**
 * The one that ran.
 */
ran: number, 
/**
 * The one of the calibration.
 */
calibrated: number, } | { "reason": "resembling", 
/**
 * Of the expected time.
 */
share: number, } | { "reason": "published" };

/**
 * Where a measured speed lies.
 */
export type ExpectedVerdict = "within" | "faster" | "slower";

/**
 * How experts are used.
 */
export type ExpertUse = { 
/**
 * Experts that a token uses in a layer.
 */
used: number, 
/**
 * Of so many.
 */
of: number, 
/**
 * Tokens of a prompt from which 19 of 20 experts are touched.
 */
nearly_all_from: number, };

/**
 * A part of a token's time.
 */
export type ExplainedPart = { 
/**
 * What takes it.
 */
portion: Portion, 
/**
 * Milliseconds.
 */
ms: number, 
/**
 * Of the whole time.
 */
share: number, };

/**
 * One of the two speeds.
 */
export type ExplainedPhase = "prefill" | "decode";

/**
 * What to save, and where.
 */
export type ExportRequest = { 
/**
 * Which figure.
 */
figure: FigureName, 
/**
 * What is shown.
 */
results: Array<string>, 
/**
 * Draw the ceiling.
 */
ceiling: boolean, 
/**
 * Draw what is expected.
 */
expected: boolean, 
/**
 * Draw what the expected time is made of.
 */
breakdown: boolean, 
/**
 * Form.
 */
form: Form, 
/**
 * Dark colours.
 */
dark: boolean, 
/**
 * Width of the figure, px.
 */
width: number, 
/**
 * Everything so many times larger: 1.5 for a projector.
 */
scale: number, 
/**
 * Pixels of a PNG for each px.
 */
pixels: number, 
/**
 * Whole path; the ending is added where it is missing. `~` is the home folder.
 */
path: string, 
/**
 * Replace what is there; else `file_exists`.
 */
replace: boolean, };

/**
 * What was saved.
 */
export type Exported = { 
/**
 * Whole path, to show.
 */
path: string, 
/**
 * Its size.
 */
bytes: number, };

/**
 * One fact; the page knows the words and the unit of each name.
 */
export type Fact = { 
/**
 * What it is.
 */
name: FactName, 
/**
 * A number, in the unit of its name.
 */
number: number | null, 
/**
 * A text, to show.
 */
text: string | null, };

/**
 * The facts there are.
 */
export type FactName = "name" | "architecture" | "kind" | "parameters" | "active_parameters" | "quantization" | "bits_per_weight" | "layers" | "context_length" | "file_bytes" | "header_bytes" | "weight_bytes_per_token" | "kv_bytes_per_token" | "split" | "path";

/**
 * What `inspect` says of a file, for the details of a row.
 */
export type Facts = { 
/**
 * The row.
 */
row: string, 
/**
 * Facts in order.
 */
facts: Array<Fact>, 
/**
 * Tensor types, most bytes first.
 */
types: Array<TypeShare>, 
/**
 * What a reader of the file should know, sentences.
 */
warnings: Array<string>, };

/**
 * A figure as values.
 */
export type FigureData = { 
/**
 * Which figure it is: `speeds`, ...
 */
kind: string, 
/**
 * Width of the frame that the boxes lie in, in px.
 */
width: number, 
/**
 * Height of it.
 */
height: number, 
/**
 * The title on one line.
 */
title: string, 
/**
 * The subtitle on one line.
 */
subtitle: string, 
/**
 * Provenance.
 */
footer: Array<string>, 
/**
 * The panels from left to right, or from top to bottom.
 */
panels: Array<FigurePanel>, 
/**
 * The rows from top to bottom, with the names that the picture may have shortened.
 */
rows: Array<FigureRow>, 
/**
 * Every mark, in the order in which a keyboard walks through them.
 */
marks: Array<Mark>, };

/**
 * A figure of the view.
 */
export type FigureName = "speeds" | "context" | "users" | "first_token" | "quantization" | "sustained" | "roofline" | "breakdown" | "estimate";

/**
 * One panel with its axis.
 */
export type FigurePanel = { 
/**
 * `prefill`, `decode`, `first_token`, ...
 */
id: string, 
/**
 * Unit of its values: `tok/s`.
 */
unit: string, 
/**
 * Position of zero, in px from the left, or from the top where values grow upward.
 */
origin: number, 
/**
 * Px per unit: a value lies at `origin + value * scale`.
 */
scale: number, 
/**
 * Value at the axis' end; marks beyond it stop there.
 */
end: number, 
/**
 * Values of the ticks.
 */
ticks: Array<number>, 
/**
 * Values grow upward: one lies at `origin - value * scale`.
 */
upward: boolean, 
/**
 * Each power of ten takes the same room: a value lies `log10(value) * scale` from the origin,
 * which is the place of 1.
 */
logarithmic: boolean, 
/**
 * What marks stand at beside their value: `depth`, `users`, `seconds`,
 * `intensity`.
 */
across: string | null, };

/**
 * What to draw.
 */
export type FigureRequest = { 
/**
 * Which figure.
 */
figure: FigureName, 
/**
 * Results, in no order: the figure has its own.
 */
results: Array<string>, 
/**
 * The one that is explained; `None` = the first row.
 */
focus: string | null, 
/**
 * Draw the ceiling.
 */
ceiling: boolean, 
/**
 * Draw what is expected.
 */
expected: boolean, 
/**
 * Draw what the expected time is made of.
 */
breakdown: boolean, 
/**
 * Width of the place, px.
 */
width: number, 
/**
 * Height of the place, px; `None` = as high as it comes.
 */
height: number | null, 
/**
 * Everything so many times larger: the text size.
 */
scale: number, };

/**
 * One row.
 */
export type FigureRow = { 
/**
 * The model, where rows are grouped by one.
 */
group: string | null, 
/**
 * Its name in full.
 */
label: string, 
/**
 * What stands below the name: file size, settings.
 */
details: Array<string>, };

/**
 * A figure with all that belongs to it.
 */
export type FigureView = { 
/**
 * The drawing, colours as custom properties; trusted: made here, names escaped.
 */
svg: string, 
/**
 * Width of the drawing on screen, px.
 */
width: number, 
/**
 * Height of it, px.
 */
height: number, 
/**
 * Values, places and words; boxes are in user units of the drawing (`data.width` wide).
 */
data: FigureData, 
/**
 * The result of each row of the figure.
 */
row_results: Array<string>, 
/**
 * What explains the focused result, the one that says most first.
 */
statements: Array<Statement>, 
/**
 * Why nothing is expected of the focused result; `None` = something is, or the figure is not
 * about single speeds.
 */
unexpected: Unexpected | null, 
/**
 * What to beware of when comparing these.
 */
cautions: Array<Caution>, 
/**
 * The ceiling can be drawn: the read speed is known for at least one of these.
 */
has_ceiling: boolean, 
/**
 * Something is expected of at least one of these, which can be drawn.
 */
has_expected: boolean, 
/**
 * Where an export would go: whole path without the ending.
 */
save_as: string, };

/**
 * State of the file in the page cache when a load starts.
 */
export type FileCaches = "cold" | "warm" | "each";

/**
 * A place that the person added.
 */
export type Folder = { 
/**
 * Its id.
 */
id: string, 
/**
 * Its path, to show.
 */
path: string, 
/**
 * It is there.
 */
exists: boolean, 
/**
 * Models found in it.
 */
models: number, 
/**
 * It is one file, not a folder.
 */
is_file: boolean, };

/**
 * Forms that what is shown can be saved in.
 */
export type Form = "svg" | "png" | "pdf" | "csv" | "markdown" | "json";

/**
 * What a sample found beside its main figure. Times are seconds.
 */
export type Found = { "found": "speed" } | { "found": "first_token", 
/**
 * Loading the model; `None` where it was loaded before.
 */
load: number | null, 
/**
 * Making the context; `None` where it was there before.
 */
context: number | null, 
/**
 * Share of the file that lay in memory when the load began; `None` = not known.
 */
resident: number | null, 
/**
 * Tokenizing.
 */
tokenize: number, 
/**
 * Reading the prompt.
 */
prefill: number, 
/**
 * Choosing the first token.
 */
sample: number, 
/**
 * Writing the second token; `None` when one was asked for.
 */
decode: number | null, } | { "found": "prefix_cache", 
/**
 * In order.
 */
requests: Array<Served>, } | { "found": "users", 
/**
 * Prefill of all together, tokens per second.
 */
prefill: number, 
/**
 * Decode of each, tokens per second.
 */
each: number, 
/**
 * Median of the times to the first token.
 */
median: number, 
/**
 * The longest of them.
 */
worst: number, } | { "found": "tuned", 
/**
 * In which they differ; none = the usual settings stand.
 */
choice: Array<Setting>, 
/**
 * Lower 95 % bound of the gain; `None` where nothing was faster.
 */
gain_low: number | null, 
/**
 * Speeds of the usual settings.
 */
usual: BothSpeeds, 
/**
 * Speeds of what was found; `None` where the usual settings stand.
 */
speeds: BothSpeeds | null, } | { "found": "quality", 
/**
 * exp of the mean negative log-likelihood.
 */
perplexity: number, 
/**
 * Its standard error.
 */
error: number, 
/**
 * Against the base model.
 */
base: AgainstBaseModel | null, };

/**
 * A part of the way to the ceiling.
 */
export type GapPart = { 
/**
 * What takes it; all that is read as weights is one.
 */
portion: Portion, 
/**
 * Milliseconds.
 */
ms: number, };

/**
 * Tests of a model that cannot be measured.
 */
export type Hindrance = { 
/**
 * Row of Models.
 */
model: string, 
/**
 * Its name.
 */
name: string, 
/**
 * One sentence.
 */
sentence: string, 
/**
 * The tests that are left out; empty = all of the model's.
 */
rows: Array<RowKind>, };

/**
 * A change of one thing with which it would fit.
 */
export type Instead = { "instead": "context", 
/**
 * At most so many tokens.
 */
tokens: number, } | { "instead": "cache", 
/**
 * `q8_0`.
 */
cache: string, } | { "instead": "users", 
/**
 * At most so many.
 */
users: number, } | { "instead": "quantization", 
/**
 * Row of Models.
 */
row: string, 
/**
 * Its label.
 */
quantization: string, 
/**
 * What it needs, bytes.
 */
bytes: number, };

/**
 * A piece of work.
 */
export type Job = { 
/**
 * Its id.
 */
id: string, 
/**
 * What it does.
 */
kind: JobKind, 
/**
 * What it makes or is about, to show: `SmolLM2 135M Instruct Q4_K_M`.
 */
title: string, 
/**
 * Row of Models that it makes, whose chip shows the progress; of a twin the row or header that
 * it is about; of a calibration nothing.
 */
row: string, 
/**
 * Where it stands.
 */
state: JobState, };

/**
 * What a job does.
 */
export type JobKind = "quantize" | "download" | "builtin" | "twin" | "calibrate";

/**
 * Where a job stands.
 */
export type JobState = { "state": "waiting", 
/**
 * One sentence.
 */
why: string, } | { "state": "running", 
/**
 * From 0 to 1; `None` = not known.
 */
fraction: number | null, 
/**
 * Bytes done, of a download.
 */
bytes: number | null, 
/**
 * Bytes in all, of a download.
 */
bytes_total: number | null, } | { "state": "done", 
/**
 * Row in Models, or what it was about.
 */
row: string, } | { "state": "failed", 
/**
 * Why.
 */
problem: Problem, } | { "state": "cancelled" };

/**
 * A header that was looked at.
 */
export type Looked = { 
/**
 * To ask for an estimate or a twin: a row of Models, where it is one.
 */
id: string, 
/**
 * Name of the model.
 */
name: string, 
/**
 * Label of its quantization.
 */
quantization: string, 
/**
 * Where it is, to show.
 */
from: string, 
/**
 * It is in the list of models.
 */
is_row: boolean, 
/**
 * Parameters.
 */
parameters: number | null, 
/**
 * Those that one token uses, where they are fewer.
 */
active_parameters: number | null, 
/**
 * What the whole file is, bytes.
 */
file_bytes: number | null, 
/**
 * What was read of it over the network, bytes; `None` where it is on this disk.
 */
fetched_bytes: number | null, 
/**
 * Layers.
 */
layers: number | null, 
/**
 * The context it was trained for, tokens.
 */
context_length: number | null, 
/**
 * What a reader should know, sentences.
 */
notes: Array<string>, };

/**
 * The machine chip.
 */
export type MachineCard = { 
/**
 * Name of the CPU, shortened for a narrow column: `AMD EPYC 9B14`.
 */
cpu: string, 
/**
 * Physical cores that this program may use.
 */
cores: number | null, 
/**
 * Memory this program may use in all, bytes.
 */
memory_bytes: number | null, 
/**
 * Read speed from a buffer far beyond the caches, bytes per second; `None` = not measured here.
 */
read_bytes_s: number | null, 
/**
 * When that was measured.
 */
read_at: string | null, 
/**
 * When the calibration that expected speeds rest on was made; `None` = there is none for the
 * settings of now.
 */
calibrated_at: string | null, 
/**
 * CPU variant and build that ran last: `zen4, llama.cpp 11434`; `None` before any run.
 */
engine: string | null, 
/**
 * Operating system.
 */
os: string, };

/**
 * The machine beside a test; unknown is `None`.
 */
export type MachineNow = { 
/**
 * Swap in use, bytes.
 */
swap_bytes: number | null, 
/**
 * Mean clock, Hz.
 */
clock_hz: number | null, 
/**
 * Highest temperature, degrees Celsius.
 */
temperature_c: number | null, 
/**
 * Cores' worth of work by other programs.
 */
other_load_cores: number | null, 
/**
 * Share of time the hypervisor took, 0 to 1.
 */
steal: number | null, 
/**
 * Memory that is free to use, bytes.
 */
memory_bytes: number | null, 
/**
 * It runs on battery.
 */
on_battery: boolean | null, 
/**
 * Power profile, in the system's word.
 */
power_profile: string | null, 
/**
 * Times its clock was held down because of heat while the test ran.
 */
throttles: number | null, };

/**
 * A mark: its value, its place, its words.
 */
export type Mark = { 
/**
 * What it is.
 */
kind: MarkKind, 
/**
 * Index into the panels.
 */
panel: number, 
/**
 * Index into the rows.
 */
row: number, 
/**
 * Counts the headlines from 0; what belongs to one has its number.
 */
cell: number, 
/**
 * Where it stands across: depth, users, seconds.
 */
at: number | null, 
/**
 * What it is of where a panel has several lines or parts for a row: `each user`, `prefill`.
 */
part: string | null, 
/**
 * Its value: the mean of a bar, the middle of a band. Not measured is `None`.
 */
value: number | null, 
/**
 * Lower end of a band.
 */
low: number | null, 
/**
 * Upper end of a band.
 */
high: number | null, 
/**
 * Standard deviation of a bar.
 */
deviation: number | null, 
/**
 * Samples of a bar, 0 where only their mean is known.
 */
samples: number | null, 
/**
 * Number of a sample, from 1.
 */
repetition: number | null, 
/**
 * Lies past the end of the axis; its box is where the picture says so.
 */
beyond_axis: boolean, 
/**
 * Left edge in px.
 */
x: number, 
/**
 * Upper edge in px.
 */
y: number, 
/**
 * Width in px.
 */
w: number, 
/**
 * Height in px.
 */
h: number, 
/**
 * The read-out, one line.
 */
text: string, };

/**
 * What a mark is.
 */
export type MarkKind = "bar" | "point" | "part" | "reused" | "missing" | "ceiling" | "band" | "sample";

/**
 * How fast matrices of one type are gone through.
 */
export type MatrixRate = { 
/**
 * `Q4_K`.
 */
tensor_type: string, 
/**
 * With one token, from a cache: weights read per second, bytes; `None` = not measured.
 */
near_bytes_s: number | null, 
/**
 * With one token, from memory.
 */
far_bytes_s: number | null, 
/**
 * With a micro-batch: operations per second.
 */
flops_s: number | null, 
/**
 * The weights are repacked for this CPU.
 */
repacked: boolean, };

/**
 * Who says how much memory is taken.
 */
export type MemoryFrom = "engine" | "formula";

/**
 * Memory by part, bytes.
 */
export type MemoryView = { 
/**
 * Weights as they are loaded.
 */
weights_bytes: number | null, 
/**
 * Keys and values.
 */
kv_bytes: number | null, 
/**
 * Recurrent state.
 */
state_bytes: number | null, 
/**
 * Working buffers; `None` where the engine was not asked.
 */
compute_bytes: number | null, 
/**
 * Logits.
 */
output_bytes: number | null, 
/**
 * All of it; `None` where a part is not known.
 */
total_bytes: number | null, 
/**
 * What is known of it.
 */
at_least_bytes: number, 
/**
 * Memory that is free now.
 */
free_bytes: number | null, 
/**
 * That fits; `None` where what is known does not decide it.
 */
fits: boolean | null, 
/**
 * Who says so.
 */
source: MemoryFrom, 
/**
 * What would fit instead, where it does not.
 */
instead: Array<Instead>, };

/**
 * A base model with its quantizations.
 */
export type ModelGroup = { 
/**
 * Its id.
 */
id: string, 
/**
 * Its name without a quantization.
 */
name: string, 
/**
 * Architecture.
 */
architecture: string | null, 
/**
 * Parameters.
 */
parameters: number | null, 
/**
 * Those that one token uses, where they are fewer.
 */
active_parameters: number | null, 
/**
 * The context it was trained for, tokens.
 */
context_length: number | null, 
/**
 * Random weights made here: its speed is real, its text is noise.
 */
synthetic: boolean, 
/**
 * Its quantizations, the fewest bits per weight first.
 */
rows: Array<ModelRow>, };

/**
 * One quantization of a model.
 */
export type ModelRow = { 
/**
 * Its id, also in plans.
 */
id: string, 
/**
 * The label of the chip: `Q4_K_M`; `unknown` where the file does not say.
 */
quantization: string, 
/**
 * Where it is.
 */
place: Place, 
/**
 * File name, to show.
 */
file: string | null, 
/**
 * Whole path, to show.
 */
path: string | null, 
/**
 * Size of the file (set), foreseen where it is not there yet; bytes.
 */
file_bytes: number | null, 
/**
 * Bits per weight.
 */
bits_per_weight: number | null, 
/**
 * Memory at the view's context, bytes: all of it where the engine was asked, otherwise without
 * its working buffers.
 */
memory_bytes: number | null, 
/**
 * Who says so.
 */
memory_source: MemoryFrom, 
/**
 * That fits into the memory that is free now.
 */
fits: boolean | null, 
/**
 * The newest measured prefill here.
 */
prefill: Speed | null, 
/**
 * The newest measured decode here.
 */
decode: Speed | null, 
/**
 * What prefill of 512 tokens is expected to be; `None` = not calibrated, or not known.
 */
prefill_expected: Predicted | null, 
/**
 * What decode is expected to be.
 */
decode_expected: Predicted | null, 
/**
 * What decode cannot exceed here, tokens per second; `None` = read speed not measured.
 */
decode_ceiling: number | null, 
/**
 * Why it cannot be measured, a sentence; `None` = it can.
 */
hindrance: string | null, };

/**
 * Every model that is known.
 */
export type ModelsView = { 
/**
 * Base models, the smallest first; the built-in one is always among them.
 */
groups: Array<ModelGroup>, 
/**
 * Files that cannot be read.
 */
broken: Array<OddFile>, 
/**
 * Files that go with a model or hold none (projectors, adapters, importance matrices).
 */
helpers: Array<OddFile>, 
/**
 * What the scan passed over, sentences.
 */
notes: Array<string>, 
/**
 * Folders and files that the person added.
 */
folders: Array<Folder>, 
/**
 * A scan goes on.
 */
scanning: Scanning | null, 
/**
 * Memory that is free to use now, bytes.
 */
free_memory_bytes: number | null, 
/**
 * Context that memory is counted for, tokens.
 */
context: number, };

/**
 * A file that is no model.
 */
export type OddFile = { 
/**
 * Its id.
 */
id: string, 
/**
 * File name, to show.
 */
file: string, 
/**
 * Whole path, to show.
 */
path: string, 
/**
 * What is wrong with it, or what it is: one sentence.
 */
sentence: string, };

/**
 * What one choice of tests would take.
 */
export type Offer = { 
/**
 * Tests that can be measured.
 */
tests: number, 
/**
 * Seconds they take; `None` = not known.
 */
seconds: number | null, 
/**
 * Why there is none, a sentence.
 */
why_not: string | null, };

/**
 * What each choice would take, and what can be chosen here.
 */
export type Offers = { 
/**
 * One for each choice that was asked for, in that order.
 */
offers: Array<Offer>, 
/**
 * CPU variants of the engine that run here, best first; empty = not known before a first run.
 */
variants: Array<string>, 
/**
 * GPUs that the engine computes on; empty = none, or not known before a first run.
 */
gpus: Array<string>, };

/**
 * Several choices of tests for the same models, to know what each would take.
 */
export type OffersRequest = { 
/**
 * Rows of Models.
 */
models: Array<string>, 
/**
 * The choices.
 */
tests: Array<Tests>, 
/**
 * Threads of the engine; `None` = as the settings say.
 */
threads: number | null, };

/**
 * Results of a figure other than speeds.
 */
export type OtherResults = { 
/**
 * The figure.
 */
figure: FigureName, 
/**
 * Base models, the most recently measured first; empty = nothing of this kind was measured.
 */
groups: Array<ResultGroup>, };

/**
 * A name and a value to show.
 */
export type Pair = { 
/**
 * Name.
 */
name: string, 
/**
 * Value; `None` = unknown.
 */
value: string | null, };

/**
 * The two speeds.
 */
export type PhaseName = "prefill" | "decode";

/**
 * Where a quantization is.
 */
export type Place = { "place": "on_disk" } | { "place": "can_be_made", 
/**
 * Quantization of the source.
 */
from: string, 
/**
 * The source is itself so coarse that quality suffers beyond that of the type.
 */
lossy_source: boolean, } | { "place": "can_be_downloaded", 
/**
 * Where from, to show: repository and file.
 */
from: string, };

/**
 * What is to be measured.
 */
export type PlanRequest = { 
/**
 * Rows of Models, in the order they are measured.
 */
models: Array<string>, 
/**
 * The tests of each.
 */
tests: Tests, 
/**
 * Threads of the engine; `None` = as the settings say.
 */
threads: number | null, };

/**
 * A plan made ready, before it is run.
 */
export type PlanView = { 
/**
 * What was asked for; `None` for a run that goes on where another was cut off.
 */
asked: PlanRequest | null, 
/**
 * The tests in order.
 */
rows: Array<PlannedRow>, 
/**
 * Timed repetitions of each; with `until` the fewest.
 */
repetitions: number, 
/**
 * When a test has been repeated often enough; `None` = after `repetitions`.
 */
until: UntilView | null, 
/**
 * How the repetitions of different tests follow each other.
 */
order: RowOrder, 
/**
 * Threads of the engine.
 */
threads: number, 
/**
 * Seconds it will take, from earlier results here; `None` = not known yet.
 */
seconds: number | null, 
/**
 * What cannot be measured, with why; the rest can.
 */
hindrances: Array<Hindrance>, };

/**
 * One test of a plan.
 */
export type PlannedRow = { 
/**
 * Its place in the plan, from 0.
 */
position: number, 
/**
 * Row of Models.
 */
model: string, 
/**
 * Name of the base model.
 */
name: string, 
/**
 * Quantization label.
 */
quantization: string, 
/**
 * What is measured.
 */
what: RowKind, 
/**
 * What the main figure of its samples is.
 */
unit: Unit, 
/**
 * Settings that differ between the plan's tests.
 */
settings: Array<Setting>, 
/**
 * Seconds it will take; `None` = not known yet.
 */
seconds: number | null, 
/**
 * What decode cannot exceed here; `None` for all else and where it is not known.
 */
ceiling: number | null, };

/**
 * A kind of work that takes time.
 */
export type Portion = "weights" | "experts" | "output" | "attention" | "state" | "layers" | "step";

/**
 * A speed that was worked out, not measured.
 */
export type Predicted = { 
/**
 * Tokens per second.
 */
tok_s: number, 
/**
 * Lower end of the band.
 */
low: number, 
/**
 * Upper end.
 */
high: number, };

/**
 * What went wrong: the page branches on the code and shows the message.
 */
export type Problem = { 
/**
 * Stable key: `file_unusable`, `file_exists`, `busy`, `unknown_run`, ...
 */
code: string, 
/**
 * One sentence that names the thing and says what to do.
 */
message: string, 
/**
 * More for those who want to know: log lines, a path.
 */
details: string | null, };

/**
 * A side of a comparison of two quantizations.
 */
export type RateSide = { 
/**
 * Its label.
 */
label: string, 
/**
 * ggml's name of the type that most of its work is done in.
 */
tensor_type: string, 
/**
 * Operations per second that a matrix of it times a batch of tokens is done with here.
 */
flops_s: number, 
/**
 * Bytes of weights that a token reads.
 */
weight_bytes: number, };

/**
 * How fast a buffer is read.
 */
export type ReadAt = { 
/**
 * Its size.
 */
buffer_bytes: number, 
/**
 * Bytes per second.
 */
bytes_s: number, };

/**
 * What a statement rests on.
 */
export type Rests = { "rests": "file" } | { "rests": "calibrated" } | { "rests": "corrected", 
/**
 * How many.
 */
runs: number, } | { "rests": "published" };

/**
 * Results of one base model.
 */
export type ResultGroup = { 
/**
 * Name of the base model.
 */
name: string, 
/**
 * Its results, newest first.
 */
rows: Array<ResultRow>, };

/**
 * One result: a model under one choice of settings in one run.
 */
export type ResultRow = { 
/**
 * Its id.
 */
id: string, 
/**
 * The run it belongs to.
 */
run: string, 
/**
 * Quantization label.
 */
quantization: string, 
/**
 * What tells it from other results of this model: `d4096`, `4 threads`, ...; empty = nothing.
 */
differs: string, 
/**
 * When it was measured.
 */
at: string, 
/**
 * Machine it comes from, where it is not this one.
 */
elsewhere: string | null, 
/**
 * Prefill.
 */
prefill: Speed | null, 
/**
 * Decode.
 */
decode: Speed | null, 
/**
 * What readers of it should know.
 */
warnings: Array<Warning>, 
/**
 * The run has a note.
 */
noted: boolean, };

/**
 * Results to choose from.
 */
export type ResultsView = { 
/**
 * Base models with their speeds, the most recently measured first.
 */
groups: Array<ResultGroup>, 
/**
 * The results of the other figures, each of them once, in the order they are offered.
 * Roofline, breakdown and estimate have none of their own: they show those of speeds.
 */
others: Array<OtherResults>, 
/**
 * This machine is calibrated, so that figures can show what is expected.
 */
calibrated: boolean, 
/**
 * Runs without any result (failed, cancelled), newest first: their pages say why.
 */
runs: Array<RunLine>, };

/**
 * A run that was stopped or cut off, with tests that are missing.
 */
export type ResumableRun = { 
/**
 * Its id.
 */
run: string, 
/**
 * When it began (UTC).
 */
at: string, 
/**
 * Names of its models.
 */
models: Array<string>, 
/**
 * Tests that are missing.
 */
missing: number, 
/**
 * All tests of its plan.
 */
of: number, 
/**
 * It was cut off; otherwise the person stopped it.
 */
interrupted: boolean, };

/**
 * What a test measures.
 */
export type RowKind = { "kind": "speed", 
/**
 * Which.
 */
phase: PhaseName, 
/**
 * Tokens read or written.
 */
tokens: number, 
/**
 * Tokens in the cache before.
 */
depth: number, } | { "kind": "both", 
/**
 * Tokens read.
 */
prompt: number, 
/**
 * Tokens written.
 */
generate: number, 
/**
 * Tokens in the cache before.
 */
depth: number, } | { "kind": "first_token", 
/**
 * Prompt tokens.
 */
prompt: number, 
/**
 * State of the file when the load starts; `None` = as it is.
 */
cold: boolean | null, } | { "kind": "prefix_cache", 
/**
 * Prompt tokens.
 */
prompt: number, 
/**
 * Tokens of the end that change.
 */
changed: number, } | { "kind": "users", 
/**
 * How many.
 */
users: number, 
/**
 * Prompt tokens of each.
 */
prompt: number, 
/**
 * Tokens written for each.
 */
generate: number, 
/**
 * A part of the cache for each.
 */
split_kv: boolean, 
/**
 * One prompt for all.
 */
shared_prompt: boolean, } | { "kind": "tune", 
/**
 * For what.
 */
target: TuneFor, } | { "kind": "quality", 
/**
 * Tokens that are read; `None` = the whole text.
 */
tokens: number | null, 
/**
 * Tokens of a chunk.
 */
chunk: number, 
/**
 * The model whose predictions are taken for right; `None` = perplexity alone.
 */
base: string | null, };

/**
 * How the repetitions of different tests follow each other.
 */
export type RowOrder = { "order": "one_by_one" } | { "order": "interleaved" } | { "order": "sustained", 
/**
 * Seconds.
 */
seconds: number, };

/**
 * How a run ended.
 */
export type RunEnd = { "end": "complete" } | { "end": "stopped" } | { "end": "failed", 
/**
 * Kind of failure.
 */
code: string, 
/**
 * One sentence.
 */
message: string, };

/**
 * A step of a run. Every one is kept, so that `follow_run` can tell a run from its start.
 */
export type RunEvent = { 
/**
 * When, seconds since the run was asked for.
 */
at_s: number, 
/**
 * Seconds the rest will take, as far as is known now.
 */
left_s: number | null, 
/**
 * What happened.
 */
step: RunStep, };

/**
 * A run as a line.
 */
export type RunLine = { 
/**
 * Its id.
 */
id: string, 
/**
 * When it started.
 */
at: string, 
/**
 * What it measured, to show: `SmolLM2 135M Instruct Q4_1, Q8_0`.
 */
models: string, 
/**
 * Why it has no result, or how it ended: one sentence.
 */
sentence: string, };

/**
 * A run with everything.
 */
export type RunPage = { 
/**
 * Its id.
 */
id: string, 
/**
 * Measured here, or where it comes from.
 */
origin: string, 
/**
 * Preset, to show.
 */
preset: string, 
/**
 * When it started.
 */
started_at: string, 
/**
 * When it ended; `None` = not, or not known.
 */
ended_at: string | null, 
/**
 * How it stands: `running`, `complete`, `stopped`, `interrupted`.
 */
status: string, 
/**
 * What the person wrote about it.
 */
note: string, 
/**
 * Version of Twospeed.
 */
app_version: string, 
/**
 * The machine, name and value pairs to show.
 */
machine: Array<Pair>, 
/**
 * Its tests in the order they ran.
 */
tests: Array<TestPage>, };

/**
 * What happened in a run.
 */
export type RunStep = { "step": "asked", 
/**
 * The plan.
 */
plan: PlanView, 
/**
 * When (UTC).
 */
at: string, } | { "step": "waiting", 
/**
 * One sentence.
 */
sentence: string, } | { "step": "started", 
/**
 * Its id.
 */
run: string, } | { "step": "engine", 
/**
 * CPU variant: `zen4`.
 */
variant: string, 
/**
 * llama.cpp's build number.
 */
build: number, 
/**
 * Devices that compute, the CPU first.
 */
devices: Array<string>, } | { "step": "test_started", 
/**
 * Its place in the plan.
 */
position: number, 
/**
 * Its id in the history.
 */
test: string, } | { "step": "doing", 
/**
 * Its place in the plan.
 */
position: number, 
/**
 * What.
 */
what: Doing, } | { "step": "sample", 
/**
 * The test's place in the plan.
 */
position: number, 
/**
 * From 1.
 */
number: number, 
/**
 * Its main figure, in the unit of its row.
 */
value: number, 
/**
 * What else it found.
 */
found: Found, 
/**
 * Its duration, seconds.
 */
seconds: number, 
/**
 * Half-width of the 95 % confidence interval of the mean so far, over the mean; `None`
 * for less than two samples.
 */
within: number | null, 
/**
 * The machine right after it.
 */
around: Around, } | { "step": "test_ended", 
/**
 * Its place in the plan.
 */
position: number, 
/**
 * How.
 */
end: TestEnd, 
/**
 * Mean of its samples' main figures; `None` without samples.
 */
mean: number | null, 
/**
 * Standard deviation; `None` for less than two samples.
 */
deviation: number | null, 
/**
 * What else its samples found, on the average; `None` without samples.
 */
found: Found | null, 
/**
 * Seconds from its start to its end.
 */
seconds: number, 
/**
 * What a reader of the result should know.
 */
warnings: Array<Warning>, 
/**
 * State of the machine after it.
 */
machine: MachineNow, } | { "step": "tuning", 
/**
 * The test's place in the plan.
 */
position: number, 
/**
 * How far it is.
 */
what: TuneStep, } | { "step": "read_speed" } | { "step": "ended", 
/**
 * How.
 */
end: RunEnd, 
/**
 * Results that Compare can show, in order.
 */
results: Array<string>, };

/**
 * A sample.
 */
export type SampleLine = { 
/**
 * From 1.
 */
number: number, 
/**
 * Tokens per second.
 */
tokens_per_second: number | null, 
/**
 * Duration, milliseconds.
 */
ms: number, 
/**
 * Times another program took the CPU.
 */
involuntary_switches: number | null, 
/**
 * Reads from disk.
 */
major_faults: number | null, 
/**
 * Clock right after, Hz.
 */
clock_hz: number | null, 
/**
 * Temperature right after, degrees Celsius.
 */
temperature_c: number | null, };

/**
 * What a statement says.
 */
export type Says = { "says": "token_time", 
/**
 * Milliseconds of a token.
 */
total_ms: number, 
/**
 * Of them reading weights: the layers' matrices, experts and the output matrix.
 */
weights_ms: number, 
/**
 * weights / total.
 */
weights_share: number, 
/**
 * All parts, the longest first.
 */
parts: Array<ExplainedPart>, } | { "says": "gap", 
/**
 * Tokens per second.
 */
decode: number, 
/**
 * They were measured; otherwise they are expected.
 */
is_measured: boolean, 
/**
 * Tokens per second.
 */
ceiling: number, 
/**
 * decode / ceiling.
 */
share: number, 
/**
 * Milliseconds of a token beyond those at the ceiling.
 */
gap_ms: number, 
/**
 * Milliseconds that each part adds, the largest first; of the weights what they take
 * beyond the ceiling's time, which is negative where they come faster.
 */
parts: Array<GapPart>, 
/**
 * What the parts do not explain: measured beyond expected; negative where it was faster.
 */
rest_ms: number, } | { "says": "unpacking", 
/**
 * ggml's name of the type.
 */
tensor_type: string, 
/**
 * Milliseconds of a token that its matrices take.
 */
ms: number, 
/**
 * Of the token's time.
 */
share: number, 
/**
 * Bytes per second that this comes to.
 */
rate_bytes_s: number, 
/**
 * Bytes per second that memory is read with.
 */
read_bytes_s: number, } | { "says": "judged", 
/**
 * Which speed.
 */
phase: ExplainedPhase, 
/**
 * Tokens per second.
 */
measured: number, 
/**
 * Tokens per second.
 */
expected: number, 
/**
 * The lower end of the band.
 */
low: number, 
/**
 * The upper end of the band.
 */
high: number, 
/**
 * measured / expected.
 */
ratio: number, 
/**
 * Where it lies.
 */
verdict: ExpectedVerdict, 
/**
 * What may be the reason, where it lies outside; empty = none is known.
 */
reasons: Array<ExpectedReason>, } | { "says": "threads", 
/**
 * Threads that ran.
 */
ran: number, 
/**
 * Threads of the calibration.
 */
calibrated: number, } | { "says": "rates", 
/**
 * The one with the faster prefill.
 */
reads_faster: RateSide, 
/**
 * The one with the faster decode.
 */
writes_faster: RateSide, 
/**
 * Prefill of the one / of the other.
 */
prefill_ratio: number, 
/**
 * Decode of the other / of the one.
 */
decode_ratio: number, 
/**
 * Both ratios were measured; otherwise they are expected.
 */
is_measured: boolean, } | { "says": "kv_growth", 
/**
 * Bytes of one token, in all layers that keep it.
 */
bytes_per_token: number, 
/**
 * Tokens of context.
 */
context: number, 
/**
 * Bytes of the cache at that context.
 */
kv_bytes: number, 
/**
 * Bytes at twice the context.
 */
doubled_bytes: number, 
/**
 * Bytes of weights that a token reads, which stay as they are.
 */
weight_bytes: number, 
/**
 * The depth from which a token reads as much cache as weights; `None` = not within
 * `most_context`.
 */
equal_depth: number | null, 
/**
 * The context it was trained for; where the file does not say, the most that was tried.
 */
most_context: number, } | { "says": "experts", 
/**
 * All parameters.
 */
parameters: number, 
/**
 * Those that one token uses.
 */
active: number, 
/**
 * Bytes of the file, which all take memory.
 */
file_bytes: number, 
/**
 * Bytes of weights that one token reads.
 */
weight_bytes: number | null, 
/**
 * Experts that a token uses in a layer, of how many, and the tokens of a prompt from which
 * nearly all of them are touched; `None` = the file is not here to say.
 */
used: ExpertUse | null, } | { "says": "sliding_window", 
/**
 * How many.
 */
layers: number, 
/**
 * Of so many.
 */
of: number, 
/**
 * Tokens they look back.
 */
window: number, 
/**
 * Cells that are kept for them at most.
 */
cells: number, } | { "says": "cache_resident", 
/**
 * Bytes of weights and of cache that a token reads.
 */
working_set_bytes: number, 
/**
 * Bytes of the last-level cache.
 */
cache_bytes: number, } | { "says": "fallen_back", 
/**
 * The label: `Q4_K_M`.
 */
label: string, 
/**
 * Bits per weight of the type it names.
 */
label_bits: number, 
/**
 * Bits per weight of the file.
 */
bits: number, 
/**
 * Share of the file's bytes in matrices that fell back.
 */
share: number, 
/**
 * The types they have instead, most bytes first.
 */
types: Array<string>, };

/**
 * How far a scan is.
 */
export type Scanning = { 
/**
 * Headers read.
 */
read: number, 
/**
 * Headers there are; `None` while folders are still walked.
 */
of: number | null, };

/**
 * One request of several.
 */
export type Served = { 
/**
 * Seconds to its first token.
 */
ttft: number, 
/**
 * Tokens of its prompt.
 */
prompt: number, 
/**
 * Of those, taken from the cache.
 */
reused: number, 
/**
 * Tokens that it shares with what the cache held: where fewer were reused, this model's
 * memory cannot drop a tail.
 */
shared: number, };

/**
 * A setting of a test.
 */
export type Setting = { 
/**
 * llama-bench's name of it: `n_threads`, `type_k`, ...; `variant` for the CPU variant.
 */
key: string, 
/**
 * Its value, in llama-bench's spelling.
 */
value: string, };

/**
 * What the person chose, and what holds where they chose nothing.
 */
export type Settings = { 
/**
 * Light, dark, or as the system.
 */
theme: Theme, 
/**
 * Size of all text, 0.8 to 1.6.
 */
text_size: number, 
/**
 * Threads of the engine; `None` = `default_threads`.
 */
threads: number | null, 
/**
 * Threads where nothing is chosen: physical cores that may be used.
 */
default_threads: number, 
/**
 * Most threads that make sense here.
 */
most_threads: number, 
/**
 * Look also in the folders of llama.cpp, LM Studio, Ollama and the Hugging Face tools.
 */
known_places: boolean, 
/**
 * Those folders, as far as they are there.
 */
known_folders: Array<string>, 
/**
 * Folder of the history, models made here and downloads.
 */
data_folder: string, 
/**
 * Where downloads come from: `https://huggingface.co` unless `HF_ENDPOINT` says otherwise.
 */
download_from: string, };

/**
 * A change of the settings; what is absent stays.
 */
export type SettingsChange = { 
/**
 * Light, dark, or as the system.
 */
theme?: Theme, 
/**
 * Size of all text.
 */
text_size?: number, 
/**
 * Threads of the engine; 0 = back to the default.
 */
threads?: number, 
/**
 * Look also in the folders of other programs.
 */
known_places?: boolean, };

/**
 * A measured speed.
 */
export type Speed = { 
/**
 * Mean of the samples, tokens per second.
 */
mean: number, 
/**
 * Standard deviation; `None` for one sample.
 */
deviation: number | null, 
/**
 * Each sample, tokens per second, in the order they were made.
 */
samples: Array<number>, 
/**
 * Tokens read or written.
 */
tokens: number, 
/**
 * Tokens in the cache before.
 */
depth: number, 
/**
 * When it was measured.
 */
at: string, };

/**
 * Expected speeds at a depth.
 */
export type SpeedsAt = { 
/**
 * Tokens in the cache before.
 */
depth: number, 
/**
 * Of reading 512 tokens.
 */
prefill: Predicted | null, 
/**
 * Of writing, all users together.
 */
decode: Predicted | null, 
/**
 * Cache and state that a decoded token reads there, bytes.
 */
kv_read_bytes: number | null, };

/**
 * Everything the first view needs, in one answer.
 */
export type Start = { 
/**
 * Twospeed's version.
 */
version: string, 
/**
 * The machine it runs on.
 */
machine: MachineCard, 
/**
 * What the person chose.
 */
settings: Settings, 
/**
 * What the history had to say when it was opened, sentences.
 */
notices: Array<string>, 
/**
 * A run of this window is going on: `follow_run` tells it from its start.
 */
running: boolean, 
/**
 * Jobs that are not ended.
 */
jobs: Array<Job>, 
/**
 * Where the person can be led at once: files that the program was started with.
 */
opened: Array<string>, };

/**
 * A statement with its numbers; the words are the page's.
 */
export type Statement = { "statement": "ratio", 
/**
 * Prefill, tokens per second.
 */
prefill: number, 
/**
 * Decode, tokens per second.
 */
decode: number, 
/**
 * prefill / decode.
 */
ratio: number, } | { "statement": "ceiling_share", 
/**
 * Decode, tokens per second.
 */
decode: number, 
/**
 * Ceiling, tokens per second.
 */
ceiling: number, 
/**
 * decode / ceiling; above 1 the ceiling is wrong, which the page says.
 */
share: number, 
/**
 * Bytes of weights that one token reads.
 */
weight_bytes: number, 
/**
 * Read speed that the ceiling stands on, bytes per second.
 */
read_bytes_s: number, } | { "statement": "no_ceiling" } | { "statement": "token_time", 
/**
 * Milliseconds a token takes.
 */
token_ms: number, 
/**
 * Of them, milliseconds that reading the weights takes at least.
 */
weights_ms: number, } | { "statement": "against", 
/**
 * Which speed.
 */
phase: PhaseName, 
/**
 * The focused result, to show.
 */
this: string, 
/**
 * The other, to show.
 */
other: string, 
/**
 * this / other.
 */
ratio: number, 
/**
 * Size of this file / size of the other.
 */
size_ratio: number, 
/**
 * The difference is smaller than the spread of the samples.
 */
within_noise: boolean, } | { "statement": "request", 
/**
 * Prompt, tokens.
 */
prompt: number, 
/**
 * Answer, tokens.
 */
answer: number, 
/**
 * Seconds for the prompt.
 */
prefill_s: number, 
/**
 * Seconds for the answer.
 */
decode_s: number, } | { "statement": "depth_loss", 
/**
 * Which speed.
 */
phase: PhaseName, 
/**
 * The last depth, tokens.
 */
depth: number, 
/**
 * Tokens per second at the first depth.
 */
first: number, 
/**
 * At the last.
 */
last: number, 
/**
 * 1 - last / first; negative where it became faster.
 */
lost: number, 
/**
 * The difference is smaller than the spread of the samples.
 */
within_noise: boolean, } | { "statement": "depth_cost", 
/**
 * Milliseconds more for each thousand tokens in the cache.
 */
ms_per_thousand: number, 
/**
 * Milliseconds of a token at the first depth.
 */
token_ms: number, } | { "statement": "users_together", 
/**
 * The most users.
 */
users: number, 
/**
 * The fewest.
 */
fewest: number, 
/**
 * Tokens per second of the most together.
 */
together: number, 
/**
 * Of the fewest together.
 */
before: number, 
/**
 * together / before.
 */
ratio: number, } | { "statement": "users_each", 
/**
 * The most users.
 */
users: number, 
/**
 * Tokens per second of each.
 */
each: number, 
/**
 * Of each of the fewest.
 */
before: number, 
/**
 * each / before.
 */
share: number, } | { "statement": "users_wait", 
/**
 * The most users.
 */
users: number, 
/**
 * Median over the users, milliseconds.
 */
median_ms: number, 
/**
 * The longest wait, milliseconds.
 */
worst_ms: number, } | { "statement": "wait_parts", 
/**
 * To the first token, milliseconds.
 */
total_ms: number, 
/**
 * Its parts in their order, milliseconds; what comes after the first token is none.
 */
parts: Array<WaitPart>, } | { "statement": "reuse", 
/**
 * Tokens taken from the cache.
 */
reused: number, 
/**
 * Tokens of the prompt.
 */
prompt: number, 
/**
 * Milliseconds of the new prompt.
 */
new_ms: number, 
/**
 * Of the repeated one.
 */
again_ms: number, } | { "statement": "cold_start", 
/**
 * Milliseconds of the cold start.
 */
cold_ms: number, 
/**
 * Of the warm one.
 */
warm_ms: number, } | { "statement": "quality_cost", 
/**
 * The quantization, to show.
 */
this: string, 
/**
 * The one with the largest file, to show.
 */
other: string, 
/**
 * Decode of this / of the other; `None` = not both measured.
 */
decode_ratio: number | null, 
/**
 * Perplexity of this / of the other - 1.
 */
perplexity_more: number, 
/**
 * Perplexity of this.
 */
perplexity: number, } | { "statement": "divergence", 
/**
 * Mean Kullback-Leibler divergence, nats.
 */
nats: number, 
/**
 * Share of tokens whose most likely prediction is the same.
 */
same_top: number, } | { "statement": "held", 
/**
 * Which speed.
 */
phase: PhaseName, 
/**
 * Mean of the first fifth, tokens per second.
 */
first: number, 
/**
 * Of the last.
 */
last: number, 
/**
 * last / first.
 */
share: number, 
/**
 * Seconds of all.
 */
seconds: number, } | { "statement": "explained", 
/**
 * What.
 */
says: Says, 
/**
 * What that rests on.
 */
rests: Rests, } | { "statement": "machine_course", 
/**
 * Clock in the first and the last fifth, GHz; `None` = not readable.
 */
clock_ghz: [number, number] | null, 
/**
 * The highest temperature, degrees Celsius; `None` = not readable.
 */
hottest_c: number | null, };

/**
 * How to stop a run.
 */
export type StopHow = "now" | "after_test";

/**
 * Values of settings, each measured with each; an empty list leaves a setting as it is.
 */
export type Sweep = { 
/**
 * Threads of the engine.
 */
threads: Array<number>, 
/**
 * Tokens handed to one call of the engine.
 */
batch: Array<number>, 
/**
 * Tokens computed together.
 */
micro_batch: Array<number>, 
/**
 * Types of the cache, for K and V alike: `f16`, `q8_0`, ...
 */
cache: Array<string>, 
/**
 * `auto`, `off`, `on`.
 */
flash_attention: Array<string>, 
/**
 * `auto`, `none`, `mmap`, `mlock`, `mmap+mlock`, `dio`.
 */
load_mode: Array<string>, 
/**
 * Weights repacked for the CPU.
 */
repack: Array<boolean>, 
/**
 * CPU variants of the engine by name.
 */
variant: Array<string>, };

/**
 * How a test ended.
 */
export type TestEnd = { "end": "done" } | { "end": "failed", 
/**
 * Kind of failure: `killed`, `out_of_memory`, `illegal_instruction`, ...
 */
code: string, 
/**
 * One sentence.
 */
message: string, 
/**
 * Last lines of the engine's log.
 */
log: Array<string>, } | { "end": "cancelled" } | { "end": "skipped", 
/**
 * One sentence.
 */
reason: string, };

/**
 * A test with everything.
 */
export type TestPage = { 
/**
 * Its id.
 */
id: string, 
/**
 * Model and quantization.
 */
model: string, 
/**
 * Which speed; `None` for a prompt and an answer timed as one.
 */
phase: PhaseName | null, 
/**
 * llama-bench's name: `pp512`, `tg128 @ d4096`.
 */
name: string, 
/**
 * How it ended; `None` = it runs.
 */
end: TestEnd | null, 
/**
 * It was cut off when its program ended.
 */
interrupted: boolean, 
/**
 * Mean, tokens per second.
 */
mean: number | null, 
/**
 * Standard deviation.
 */
deviation: number | null, 
/**
 * Median.
 */
median: number | null, 
/**
 * Samples.
 */
samples: Array<SampleLine>, 
/**
 * What was found beside one speed, means over the samples: parts of a wait, users, quality.
 */
readings: Array<Pair>, 
/**
 * Mean energy of a token in joules; `None` = not readable, or not one speed.
 */
joules_per_token: number | null, 
/**
 * Why it cannot be right, one sentence; it stays out of figures until it is allowed.
 */
suspect: string | null, 
/**
 * The person allowed it all the same.
 */
allowed: boolean, 
/**
 * What a reader should know.
 */
warnings: Array<Warning>, 
/**
 * Settings in llama-bench's names.
 */
settings: Array<Pair>, 
/**
 * Engine, variant, load time, page cache, memory: to show.
 */
environment: Array<Pair>, 
/**
 * What lay where: buffer and size.
 */
placement: Array<Pair>, };

/**
 * Which tests.
 */
export type Tests = { "preset": "quick" } | { "preset": "article" } | { "preset": "context_curve", 
/**
 * Deepest, tokens; `None` = as deep as the model and the memory allow.
 */
deepest: number | null, } | { "preset": "long_document", 
/**
 * Tokens of the longest; `None` = 16,384, or as many as the model and the memory allow.
 */
longest: number | null, } | { "preset": "users", 
/**
 * How many, each a test.
 */
users: Array<number>, 
/**
 * Prompt tokens of each.
 */
prompt: number, 
/**
 * Tokens written for each.
 */
generate: number, 
/**
 * A part of the cache for each; otherwise they share one.
 */
split_kv: boolean, 
/**
 * All have one prompt, computed once.
 */
shared_prompt: boolean, } | { "preset": "face_off", 
/**
 * The row of Models whose predictions are taken for right; `None` = the best that is chosen.
 */
base: string | null, 
/**
 * Perplexity and divergence too, beside both speeds.
 */
quality: boolean, } | { "preset": "first_token", 
/**
 * Prompt tokens.
 */
prompt: number, 
/**
 * The file cold, warm, or each.
 */
cache: FileCaches, } | { "preset": "prefix_cache", 
/**
 * Prompt tokens.
 */
prompt: number, 
/**
 * Tokens of its end that change.
 */
changed: number, } | { "preset": "roofline" } | { "preset": "sustained", 
/**
 * Minutes.
 */
minutes: number, } | { "preset": "tune", 
/**
 * What is to be fast.
 */
target: TuneFor, } | { "preset": "offload" } | { "preset": "own", 
/**
 * Prompt lengths, tokens.
 */
prompt: Array<number>, 
/**
 * Answer lengths, tokens.
 */
generate: Array<number>, 
/**
 * Tokens in the cache before, for each of the above.
 */
depth: Array<number>, 
/**
 * Timed repetitions; with `until` the fewest.
 */
repetitions: number, 
/**
 * Repeat until the mean is known to so many percent; `None` = as often as is said.
 */
until: number | null, 
/**
 * One repetition of each test in turn instead of all of one test at once.
 */
interleaved: boolean, 
/**
 * Settings of which each is measured with each.
 */
sweep: Sweep, };

/**
 * The colours of the window.
 */
export type Theme = "system" | "light" | "dark";

/**
 * What takes time.
 */
export type TimeOf = "weights" | "experts" | "output" | "attention" | "state" | "layers" | "step";

/**
 * A part of the time.
 */
export type TimePart = { 
/**
 * What takes it.
 */
what: TimeOf, 
/**
 * Of which tensor type, of weights.
 */
tensor_type: string | null, 
/**
 * Milliseconds.
 */
ms: number, 
/**
 * Of the whole, from 0 to 1.
 */
share: number, 
/**
 * The very operation was measured here; otherwise one that resembles it.
 */
measured: boolean, };

/**
 * What Tune makes fast.
 */
export type TuneFor = { "tune": "prefill" } | { "tune": "decode" } | { "tune": "mix", 
/**
 * Prompt tokens.
 */
prompt: number, 
/**
 * Answer tokens.
 */
generate: number, };

/**
 * What a stage of tuning turns.
 */
export type TuneStage = "variant" | "threads" | "attention" | "micro_batch";

/**
 * A step of tuning. Settings are those in which a choice differs from the usual ones: none of
 * them = the usual settings themselves.
 */
export type TuneStep = { "tuning": "searching", 
/**
 * Their speeds.
 */
speeds: BothSpeeds, 
/**
 * Combinations there are.
 */
combinations: number, 
/**
 * Seconds that all of them would take at least.
 */
grid_s: number, 
/**
 * Seconds that tuning may take.
 */
budget_s: number, } | { "tuning": "stage", 
/**
 * What is turned.
 */
stage: TuneStage, 
/**
 * The choices; the first is the best so far.
 */
choices: Array<Array<Setting>>, } | { "tuning": "testing", 
/**
 * With which settings.
 */
choice: Array<Setting>, 
/**
 * Which test.
 */
what: RowKind, } | { "tuning": "measured", 
/**
 * The choice.
 */
choice: Array<Setting>, 
/**
 * Its speeds.
 */
speeds: BothSpeeds, 
/**
 * Its speed as a share of the first choice's; `None` = not known.
 */
share: number | null, } | { "tuning": "dropped", 
/**
 * The choice.
 */
choice: Array<Setting>, 
/**
 * Its speed as a share of the fastest's; `None` where it could not be measured.
 */
share: number | null, 
/**
 * Why it could not be measured, a sentence.
 */
reason: string | null, } | { "tuning": "best", 
/**
 * The best so far.
 */
choice: Array<Setting>, 
/**
 * Its time was up before everything was tried.
 */
out_of_time: boolean, } | { "tuning": "final", 
/**
 * The best.
 */
choice: Array<Setting>, 
/**
 * Pairs.
 */
pairs: number, };

/**
 * What a twin of a model ran at: shallower models of the same shapes and types with random
 * weights, measured here. The model itself was not.
 */
export type TwinView = { 
/**
 * Prefill of 512 tokens, carried over to all layers.
 */
prefill: Predicted | null, 
/**
 * Decode, likewise.
 */
decode: Predicted | null, 
/**
 * Layers of each model that was made.
 */
layers: Array<number>, 
/**
 * Layers of the real one.
 */
of_layers: number, 
/**
 * Size of each model that was made, bytes.
 */
bytes: Array<number>, 
/**
 * Seconds that it took, all in all.
 */
seconds: number, 
/**
 * When.
 */
at: string, 
/**
 * What to know of it, sentences.
 */
notes: Array<string>, };

/**
 * A tensor type's share of a file.
 */
export type TypeShare = { 
/**
 * `Q4_K`.
 */
name: string, 
/**
 * Bytes.
 */
bytes: number, 
/**
 * Parameters.
 */
parameters: number, };

/**
 * Why nothing is expected of a result.
 */
export type Unexpected = { "unexpected": "not_calibrated" } | { "unexpected": "other_calibration", 
/**
 * What it was calibrated for, and what ran.
 */
sentence: string, } | { "unexpected": "other_machine", 
/**
 * Its name, where it has one.
 */
name: string | null, } | { "unexpected": "other_backend", 
/**
 * What computed: `CUDA`.
 */
ran: string, } | { "unexpected": "file_gone", 
/**
 * Where it lay, to show.
 */
path: string, } | { "unexpected": "file_unknown" } | { "unexpected": "not_estimated", 
/**
 * Why, sentences.
 */
why: Array<string>, };

/**
 * What the main figure of a test's samples is.
 */
export type Unit = "tokens_per_second" | "seconds" | "perplexity" | "divergence" | "gain";

/**
 * When a test has been repeated often enough.
 */
export type UntilView = { 
/**
 * Half-width of the 95 % confidence interval of the mean over the mean: 0.02 for 2 %.
 */
relative: number, 
/**
 * Repetitions after which it is given up.
 */
at_most: number, };

/**
 * A part of a wait.
 */
export type WaitPart = { 
/**
 * Which.
 */
part: WaitPartName, 
/**
 * Mean, milliseconds.
 */
ms: number, };

/**
 * What a wait consists of.
 */
export type WaitPartName = "load" | "context" | "tokenize" | "prefill" | "first_sample";

/**
 * A reason to read a result with care. The words and the advice belong to the faces.
 */
export type Warning = { "warning": "slow_first_sample", 
/**
 * Factor.
 */
by: number, } | { "warning": "high_variance", 
/**
 * Standard deviation / mean.
 */
relative: number, } | { "warning": "trend", 
/**
 * Change from the first to the last by a fitted line, relative to the mean; negative = slower.
 */
relative: number, } | { "warning": "swap_in_use", 
/**
 * Bytes.
 */
bytes: number, } | { "warning": "other_load", 
/**
 * Cores' worth.
 */
cores: number, } | { "warning": "steal", 
/**
 * Share, 0 to 1.
 */
share: number, } | { "warning": "cpu_quota", 
/**
 * Cores the quota allows.
 */
cores: number, 
/**
 * Threads used.
 */
threads: number, } | { "warning": "drift", 
/**
 * after / before - 1; positive = slower after.
 */
relative: number, } | { "warning": "on_battery" } | { "warning": "variant_set_aside", 
/**
 * The one that died.
 */
died: string, 
/**
 * The one that ran.
 */
ran: string, } | { "warning": "software_gpu", 
/**
 * Its name.
 */
device: string, } | { "warning": "nothing_offloaded", 
/**
 * Layers asked for.
 */
asked: number, } | { "warning": "page_faults", 
/**
 * Major faults.
 */
faults: number, } | { "warning": "not_settled", 
/**
 * Half-width of the 95 % confidence interval of the mean, relative to it.
 */
relative: number, 
/**
 * What was asked for.
 */
target: number, } | { "warning": "outliers", 
/**
 * How many.
 */
count: number, 
/**
 * Speed of the farthest / the median of all.
 */
by: number, } | { "warning": "throttled", 
/**
 * Times.
 */
times: number, } | { "warning": "power_saver", 
/**
 * The system's word for it.
 */
profile: string, };

/** What the page may ask: arguments, messages told meanwhile, answer. */
export interface Commands {
  start: { arguments: Record<string, never>; tells: never; answer: Start };
  follow_app: { arguments: Record<string, never>; tells: AppEvent; answer: null };
  change_settings: { arguments: { change: SettingsChange }; tells: never; answer: Settings };
  shown: { arguments: Record<string, never>; tells: never; answer: null };
  models: { arguments: Record<string, never>; tells: never; answer: ModelsView };
  facts: { arguments: { row: string }; tells: never; answer: Facts };
  add_path: { arguments: { path: string }; tells: never; answer: Added };
  remove_folder: { arguments: { folder: string }; tells: never; answer: null };
  scan: { arguments: Record<string, never>; tells: never; answer: null };
  make: { arguments: { row: string }; tells: never; answer: Job };
  cancel_job: { arguments: { job: string }; tells: never; answer: null };
  estimate: { arguments: { request: EstimateRequest }; tells: never; answer: EstimateView };
  look: { arguments: { source: string }; tells: never; answer: Looked };
  twin: { arguments: { of: string }; tells: never; answer: Job };
  pick_folder: { arguments: Record<string, never>; tells: never; answer: string | null };
  pick_file: { arguments: Record<string, never>; tells: never; answer: string | null };
  plan: { arguments: { request: PlanRequest }; tells: never; answer: PlanView };
  offers: { arguments: { request: OffersRequest }; tells: never; answer: Offers };
  start_run: { arguments: { request: PlanRequest }; tells: never; answer: null };
  follow_run: { arguments: Record<string, never>; tells: RunEvent; answer: null };
  stop_run: { arguments: { how: StopHow }; tells: never; answer: null };
  resumable: { arguments: Record<string, never>; tells: never; answer: ResumableRun | null };
  resume_run: { arguments: { run: string }; tells: never; answer: null };
  painted: { arguments: { ticket: number }; tells: never; answer: null };
  calibration: { arguments: Record<string, never>; tells: never; answer: CalibrationView | null };
  calibrate: { arguments: Record<string, never>; tells: never; answer: Job };
  results: { arguments: Record<string, never>; tells: never; answer: ResultsView };
  figure: { arguments: { request: FigureRequest }; tells: never; answer: FigureView };
  run_page: { arguments: { run: string }; tells: never; answer: RunPage };
  delete_runs: { arguments: { runs: Array<string> }; tells: never; answer: null };
  restore_runs: { arguments: { runs: Array<string> }; tells: never; answer: null };
  set_note: { arguments: { run: string; note: string }; tells: never; answer: null };
  allow_test: { arguments: { test: string; allowed: boolean }; tells: never; answer: null };
  export: { arguments: { request: ExportRequest }; tells: never; answer: Exported };
  copy: { arguments: { request: ExportRequest; what: CopyWhat }; tells: never; answer: null };
  pick_save: { arguments: { suggested: string; form: Form }; tells: never; answer: string | null };
  reveal: { arguments: { path: string }; tells: never; answer: null };
}

/** Their names, to check a list at run time. */
export const commandNames = [
  "start",
  "follow_app",
  "change_settings",
  "shown",
  "models",
  "facts",
  "add_path",
  "remove_folder",
  "scan",
  "make",
  "cancel_job",
  "estimate",
  "look",
  "twin",
  "pick_folder",
  "pick_file",
  "plan",
  "offers",
  "start_run",
  "follow_run",
  "stop_run",
  "resumable",
  "resume_run",
  "painted",
  "calibration",
  "calibrate",
  "results",
  "figure",
  "run_page",
  "delete_runs",
  "restore_runs",
  "set_note",
  "allow_test",
  "export",
  "copy",
  "pick_save",
  "reveal",
] as const satisfies readonly (keyof Commands)[];
