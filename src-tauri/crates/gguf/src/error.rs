//! What can be wrong with a file, each a sentence that names it and says what to do.

use std::io;

use crate::lookalike::Lookalike;
use crate::model::Kind;

/// Why a file was refused. Every message is one sentence for the person.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing under this path.
    #[error(
        "{file} does not exist; check the path, or list a folder's models with `twospeed models FOLDER`."
    )]
    Missing {
        /// The path.
        file: String,
    },
    /// A folder where a file is needed.
    #[error(
        "{file} is a folder; name a .gguf file in it, or list them with `twospeed models {file}`."
    )]
    Folder {
        /// The path.
        file: String,
    },
    /// A pipe, a device, a socket.
    #[error(
        "{file} is not a regular file (it is a pipe, a device or a socket); name a .gguf file."
    )]
    NotRegular {
        /// The path.
        file: String,
    },
    /// The system refused to open or read it.
    #[error("{file} cannot be read: {reason}; check its permissions and the disk.")]
    Unreadable {
        /// The path.
        file: String,
        /// The system's own word.
        #[source]
        reason: io::Error,
    },
    /// No byte in it.
    #[error("{file} is empty (0 bytes): its download never began; download it again.")]
    Empty {
        /// The path.
        file: String,
    },
    /// Something else than GGUF.
    #[error("{file} is {what}, not a GGUF model; {}.", what.advice())]
    NotGguf {
        /// The path.
        file: String,
        /// What it is instead, as far as its first bytes tell.
        what: Lookalike,
    },
    /// GGUF, but the header cannot be right.
    #[error("{file} is not usable: {fault}; {}.", fault.advice())]
    Malformed {
        /// The path.
        file: String,
        /// What is wrong.
        fault: Fault,
    },
    /// The bytes handed over end inside the header although the file goes on (a remote file's
    /// beginning), or the file shrank while it was read.
    #[error("{file}: its header goes on after the first {have} bytes; read more of the file.")]
    HeaderContinues {
        /// The name.
        file: String,
        /// Bytes that were there.
        have: u64,
    },
    /// A part of a split set whose numbers do not match its name or its set.
    #[error(
        "{file} is named part {named} of {named_parts} of its set, but its header says part {number} of {parts}; give the parts the names they were downloaded with."
    )]
    PartMisnamed {
        /// The path.
        file: String,
        /// Part by its name, from 1.
        named: u32,
        /// Parts by its name.
        named_parts: u32,
        /// Part by its header, from 1.
        number: u32,
        /// Parts by its header.
        parts: u32,
    },
    /// The set's parts do not add up to what part 1 declares.
    #[error(
        "the {parts} parts of {file} hold {found} tensors, but {declared} are declared: parts of different downloads are mixed; download the set again."
    )]
    TensorsAddUp {
        /// The first part's path.
        file: String,
        /// Parts of the set.
        parts: u32,
        /// `split.tensors.count`.
        declared: u64,
        /// What the parts hold.
        found: u64,
    },
    /// The data ends early.
    #[error(
        "{file} is cut short: {expected} bytes are expected and {found} are there; download it again or resume the download."
    )]
    Truncated {
        /// The path.
        file: String,
        /// Bytes that the whole file (set) has at least.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// A split set with holes.
    #[error(
        "{file} is split into {parts} parts and lacks {missing}; download what is missing into the same folder."
    )]
    PartsMissing {
        /// The path.
        file: String,
        /// Parts of the set.
        parts: u32,
        /// Names, shortened to a few.
        missing: String,
    },
    /// A header without weights.
    #[error(
        "{file} is only the header of a model: none of its weights is there. The whole file has {expected} bytes; download it again to run it."
    )]
    NoWeights {
        /// The path.
        file: String,
        /// Bytes of the whole file.
        expected: u64,
    },
    /// Not a model that runs by itself.
    #[error("{file} {}.", kind.no_model())]
    NotAModel {
        /// The path.
        file: String,
        /// What it is.
        kind: Kind,
    },
    /// A model without a decode speed was asked for one.
    #[error("{file} {}.", kind.no_decode())]
    NoDecode {
        /// The path.
        file: String,
        /// What it is.
        kind: Kind,
    },
    /// The engine would refuse it, or abort on it.
    #[error(
        "{file} cannot be loaded: {limit}; get the model from another source, or convert it again."
    )]
    Limit {
        /// The path.
        file: String,
        /// What the engine does not take.
        limit: Limit,
    },
    /// The file changed since its header was read.
    #[error(
        "{file} changed while it was read; wait for its download or copy to end, then try again."
    )]
    Changed {
        /// The path.
        file: String,
    },
}

/// What is wrong with a header. The words follow "is not usable:".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Byte order of IBM mainframes and old Power machines.
    #[error("it is a big-endian file, for machines of the other byte order")]
    BigEndian,
    /// Versions before 2.
    #[error("it is GGUF version {0}, of 2023, which is no longer read")]
    OldVersion(u32),
    /// Versions after 3.
    #[error("it is GGUF version {0}, newer than any known (3)")]
    NewVersion(u32),
    /// The header goes on after the end of the file.
    #[error("the file ends inside its header, after {0} bytes")]
    Ends(u64),
    /// A count or length that cannot be true.
    #[error("its header claims {claimed} {what}, but only {left} bytes follow")]
    Claim {
        /// Of what.
        what: String,
        /// How many.
        claimed: u64,
        /// Bytes after the claim.
        left: u64,
    },
    /// More than any model has.
    #[error("its header lists {claimed} {what}; no model has more than {limit}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        claimed: u64,
        /// The most that are read.
        limit: u64,
    },
    /// Longer than any model's.
    #[error("its header goes on for more than {0} MiB")]
    HeaderTooLong(u64),
    /// A key of no length.
    #[error("key number {0} is empty")]
    EmptyKey(u64),
    /// A key that no one can mean.
    #[error("key number {0} is {1} bytes long")]
    LongKey(u64, u64),
    /// The same key twice.
    #[error("the key {0} is there twice")]
    DuplicateKey(String),
    /// A value type that does not exist.
    #[error("the key {key} has value type {id}, which does not exist")]
    ValueType {
        /// The key.
        key: String,
        /// The id.
        id: u32,
    },
    /// Arrays of arrays of arrays ...
    #[error("the key {0} nests arrays too deep")]
    NestedTooDeep(String),
    /// Not a power of two, or not a 32-bit number.
    #[error("general.alignment is {0}, and has to be a power of two")]
    Alignment(String),
    /// Longer than 63 bytes.
    #[error("the name of tensor number {number} is {length} bytes long; 63 are allowed")]
    TensorName {
        /// From 0.
        number: u64,
        /// Bytes.
        length: u64,
    },
    /// The same tensor twice.
    #[error("the tensor {0} is there twice")]
    DuplicateTensor(String),
    /// More than four.
    #[error("the tensor {name} has {dimensions} dimensions; 4 are allowed")]
    Dimensions {
        /// The tensor.
        name: String,
        /// How many.
        dimensions: u32,
    },
    /// Negative or overflowing.
    #[error("the tensor {0} has an impossible shape")]
    Shape(String),
    /// Never given out.
    #[error("the tensor {name} has type {id}, which is not known")]
    TensorType {
        /// The tensor.
        name: String,
        /// The id.
        id: u32,
    },
    /// Given out once, and taken back.
    #[error("the tensor {name} has type {was}, which llama.cpp withdrew")]
    WithdrawnType {
        /// The tensor.
        name: String,
        /// The type's name.
        was: &'static str,
    },
    /// Rows of partial blocks.
    #[error(
        "the tensor {name} has rows of {row} elements, no multiple of the {block} that a block of {tensor_type} holds"
    )]
    PartialBlock {
        /// The tensor.
        name: String,
        /// Elements of a row.
        row: u64,
        /// Elements of a block.
        block: u64,
        /// The type's name.
        tensor_type: &'static str,
    },
    /// More than 8 PiB.
    #[error("the tensors up to {0} take an impossible number of bytes")]
    Size(String),
    /// A place in a split set that cannot be.
    #[error(
        "its header says that it is part {number} of {parts}; a set has at most {max} parts",
        max = crate::set::MAX_PARTS
    )]
    Place {
        /// From 1.
        number: u64,
        /// Parts of the set.
        parts: u64,
    },
    /// More than 2^53 bytes or parameters in all.
    #[error("its tensors are impossibly large together")]
    SetSize,
    /// Not where the one before ends.
    #[error(
        "the tensor {name} is said to start at byte {offset} of the data, but the one before ends at {expected}"
    )]
    Offset {
        /// The tensor.
        name: String,
        /// As the file says.
        offset: u64,
        /// As it has to be.
        expected: u64,
    },
}

impl Fault {
    /// What to do about it.
    fn advice(&self) -> &'static str {
        match self {
            Fault::BigEndian => "get the little-endian file of this model",
            Fault::OldVersion(_) | Fault::WithdrawnType { .. } => {
                "get a current file of this model, or convert it again"
            }
            Fault::NewVersion(_) | Fault::TensorType { .. } => {
                "get a newer Twospeed, or another file of this model"
            }
            Fault::Ends(_) | Fault::Claim { .. } => {
                "the download was cut off or damaged, so download it again"
            }
            _ => {
                "the file is damaged or was made wrongly, so download it again or get it from another source"
            }
        }
    }
}

/// What the engine refuses or aborts on, although the container is sound. The words follow
/// "cannot be loaded:". Source: llama.cpp `llama-model.cpp`, `llama-vocab.cpp`, `gguf.cpp`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// `block_count` beyond the compiled maximum.
    #[error("it declares {0} layers, and the engine takes at most {max}", max = crate::check::MAX_LAYERS)]
    Layers(u64),
    /// No `block_count`.
    #[error("it does not say how many layers it has ({0} is missing)")]
    NoLayers(String),
    /// More next-token-prediction layers than layers.
    #[error("it declares {next} layers for predicting ahead, more than its {layers} layers")]
    LayersAhead {
        /// `nextn_predict_layers`.
        next: u64,
        /// `block_count`.
        layers: u64,
    },
    /// More experts than compiled in.
    #[error("it declares {0} experts, and the engine takes at most {max}", max = crate::check::MAX_EXPERTS)]
    Experts(u64),
    /// Uses none of its experts, or more than it has.
    #[error("it declares {used} experts in use of {experts}")]
    ExpertsUsed {
        /// `expert_used_count`, the largest.
        used: u64,
        /// `expert_count`.
        experts: u64,
    },
    /// Experts that do not fall into their groups.
    #[error("it declares {experts} experts in {groups} groups, of which {groups_used} are used")]
    ExpertGroups {
        /// `expert_group_count`.
        groups: u64,
        /// `expert_group_used_count`.
        groups_used: u64,
        /// `expert_count`.
        experts: u64,
    },
    /// An unknown way of stretching the context.
    #[error("its rope.scaling.type {0} is not known")]
    RopeScaling(String),
    /// Arrays of arrays.
    #[error("the key {0} holds arrays inside an array")]
    NestedArray(String),
    /// A tokenizer table of the wrong width or length.
    #[error("{key} is not a list of {expected} entries of 32 bits")]
    TokenTable {
        /// The key.
        key: &'static str,
        /// Entries the vocabulary has.
        expected: u64,
    },
}
