//! A context on a loaded model: what tokens are decoded with.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::rc::Rc;

use llama_cpp_sys_2 as sys;

use crate::model::Model;
use crate::threads::ThreadPool;
use crate::wire;

/// Why tokens could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// The context has no room for them.
    NoRoom,
    /// The request was cancelled.
    Cancelled,
    /// The engine's number for anything else.
    Failed(i32),
}

/// A token of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Which.
    pub token: sys::llama_token,
    /// Whose: below the number of sequences the context was made for.
    pub sequence: sys::llama_seq_id,
    /// Its place in the sequence.
    pub position: i32,
    /// Whether its logits are wanted.
    pub output: bool,
}

/// A context with its batch and its threads. It keeps its model alive.
#[derive(Debug)]
pub struct Context {
    raw: NonNull<sys::llama_context>,
    batch: NonNull<sys::llama_batch_ext>,
    process: sys::llama_process_type,
    request: u64,
    // Freed after the context, in this order.
    _threads: Option<ThreadPool>,
    model: Rc<Model>,
}

/// Called by the engine after each node of a graph: true stops it. It takes what [`stop_data`] gives.
pub unsafe extern "C" fn stop(request: *mut c_void) -> bool {
    wire::is_cancelled(request.addr() as u64)
}

/// The number of a request as [`stop`] takes it: it travels in the pointer itself, nothing to keep
/// alive, nothing to unwind.
pub fn stop_data(request: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(request as usize)
}

impl Context {
    /// A context for request number `request`; `None` when the engine refuses (its log tells why).
    pub fn new(
        model: &Rc<Model>,
        params: sys::llama_context_params,
        threads: Option<ThreadPool>,
        request: u64,
    ) -> Option<Self> {
        // SAFETY: a live model; the parameters point to nothing.
        let raw = NonNull::new(unsafe { sys::llama_init_from_model(model.raw(), params) })?;
        // SAFETY: a live context.
        let Some(batch) = NonNull::new(unsafe { sys::llama_batch_ext_init(raw.as_ptr()) }) else {
            // SAFETY: as above, and it is used no more.
            unsafe { sys::llama_free(raw.as_ptr()) };
            return None;
        };
        if let Some(threads) = &threads {
            // SAFETY: a live context and a pool that outlives it. No second pool: one serves both.
            unsafe {
                sys::llama_attach_threadpool(raw.as_ptr(), threads.raw(), std::ptr::null_mut())
            };
        }
        let process = if model.is_encoder_alone() {
            sys::LLAMA_PROCESS_TYPE_ENCODE
        } else {
            sys::LLAMA_PROCESS_TYPE_DECODE
        };
        let mut context = Self {
            raw,
            batch,
            process,
            request,
            _threads: threads,
            model: Rc::clone(model),
        };
        context.serve(request);
        Some(context)
    }

    /// From now on, cancelling request `request` stops this context.
    pub fn serve(&mut self, request: u64) {
        self.request = request;
        // SAFETY: a live context; the callback never unwinds and reads its number only.
        unsafe { sys::llama_set_abort_callback(self.raw(), Some(stop), stop_data(request)) };
    }

    /// The engine's pointer; valid while `self` lives.
    pub fn raw(&self) -> *mut sys::llama_context {
        self.raw.as_ptr()
    }

    /// Its model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Tokens it has room for, as the engine rounded them.
    pub fn n_ctx(&self) -> u32 {
        // SAFETY: a live context, here and below.
        unsafe { sys::llama_n_ctx(self.raw()) }
    }

    /// Tokens one call may decode, as the engine limited them.
    pub fn n_batch(&self) -> usize {
        // SAFETY: as above.
        unsafe { sys::llama_n_batch(self.raw()) as usize }
    }

    /// Tokens computed together.
    pub fn n_ubatch(&self) -> usize {
        // SAFETY: as above.
        unsafe { sys::llama_n_ubatch(self.raw()) as usize }
    }

    fn memory(&self) -> sys::llama_memory_t {
        // SAFETY: as above.
        unsafe { sys::llama_get_memory(self.raw()) }
    }

    /// Whether it remembers tokens at all; without, each batch is computed for itself.
    pub fn remembers(&self) -> bool {
        !self.memory().is_null()
    }

    /// Forgets every token; what lies in the buffers stays, as llama-bench leaves it.
    pub fn forget(&mut self) {
        // SAFETY: the memory of a live context; null is allowed.
        unsafe { sys::llama_memory_clear(self.memory(), false) };
    }

    /// Forgets the tokens from position `from` on; false when this kind of memory cannot.
    pub fn forget_from(&mut self, from: i32) -> bool {
        // SAFETY: the memory of a live context, checked not to be null.
        self.remembers() && unsafe { sys::llama_memory_seq_rm(self.memory(), 0, from, -1) }
    }

    /// Sequence `to` remembers what `from` does. Where each has a part of the cache, the engine copies
    /// with its next decode.
    pub fn copy_sequence(&mut self, from: sys::llama_seq_id, to: sys::llama_seq_id) {
        if self.remembers() {
            // SAFETY: the memory of a live context; the whole of a sequence.
            unsafe { sys::llama_memory_seq_cp(self.memory(), from, to, -1, -1) };
        }
    }

    /// First position it still remembers; -1 when it remembers none.
    pub fn first_position(&self) -> i32 {
        if !self.remembers() {
            return -1;
        }
        // SAFETY: as above.
        unsafe { sys::llama_memory_seq_pos_min(self.memory(), 0) }
    }

    /// Decodes tokens at positions from `first` on, asking for the logits of the last one, and does
    /// not wait for the result. At most [`Self::n_batch`] tokens.
    pub fn decode(&mut self, tokens: &[sys::llama_token], first: i32) -> Result<(), DecodeError> {
        let last = tokens.len().wrapping_sub(1);
        let entries = tokens.iter().enumerate().map(|(offset, token)| Entry {
            token: *token,
            sequence: 0,
            position: first + offset as i32,
            output: offset == last,
        });
        self.decode_batch(entries)
    }

    /// Decodes tokens of any sequences, and does not wait for the result. At most
    /// [`Self::n_batch`] tokens, those of one sequence in the order of their positions.
    pub fn decode_batch(
        &mut self,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Result<(), DecodeError> {
        let batch = self.batch.as_ptr();
        // SAFETY: the context's own batch; the index is the one it has just given.
        unsafe {
            sys::llama_batch_ext_clear(batch);
            for entry in entries {
                let index = sys::llama_batch_ext_add_token(batch, entry.sequence, entry.token);
                if index < 0
                    || !sys::llama_batch_ext_set_pos(batch, index, &raw const entry.position)
                    || !sys::llama_batch_ext_set_output_logits(batch, index, entry.output)
                {
                    return Err(DecodeError::Failed(index));
                }
            }
        }
        // SAFETY: a live context and its own batch.
        match unsafe { sys::llama_process(self.raw(), self.process, batch) } {
            // The callback above works on the CPU only: with a GPU this is where it is noticed.
            0 if wire::is_cancelled(self.request) => Err(DecodeError::Cancelled),
            0 => Ok(()),
            1 => Err(DecodeError::NoRoom),
            2 => Err(DecodeError::Cancelled),
            number => Err(DecodeError::Failed(number)),
        }
    }

    /// Waits until everything decoded is computed.
    pub fn wait(&mut self) {
        // SAFETY: a live context.
        unsafe { sys::llama_synchronize(self.raw()) };
    }

    /// Logits of the last token decoded.
    pub fn logits(&mut self) -> Option<&[f32]> {
        // The engine counts from the end as well.
        self.logits_of(-1)
    }

    /// Logits of the token at this index of the last batch, where they were asked for.
    pub fn logits_of(&self, index: i32) -> Option<&[f32]> {
        let width = self.model.vocabulary().len() as usize;
        // SAFETY: a live context; the engine refuses an index it has no output for. An output has one
        // value for each entry of the vocabulary, and stays until the next decode, which needs `self`
        // exclusively.
        unsafe {
            let logits = sys::llama_get_logits_ith(self.raw(), index);
            (!logits.is_null()).then(|| std::slice::from_raw_parts(logits, width))
        }
    }

    /// Bytes that [`Self::save`] would write.
    pub fn state_size(&mut self) -> usize {
        // SAFETY: a live context.
        unsafe { sys::llama_state_seq_get_size(self.raw(), 0) }
    }

    /// Copies what it remembers into `state`, of [`Self::state_size`] bytes; false when it could not.
    pub fn save(&mut self, state: &mut [u8]) -> bool {
        // SAFETY: the buffer is given with its own size.
        unsafe { sys::llama_state_seq_get_data(self.raw(), state.as_mut_ptr(), state.len(), 0) > 0 }
    }

    /// Remembers what `state` holds; false when it does not fit this context.
    pub fn restore(&mut self, state: &[u8]) -> bool {
        // SAFETY: the buffer is given with its own size.
        unsafe { sys::llama_state_seq_set_data(self.raw(), state.as_ptr(), state.len(), 0) > 0 }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by the engine, owned here, used no more. The pool and the model outlive it.
        unsafe {
            sys::llama_batch_ext_free(self.batch.as_ptr());
            sys::llama_free(self.raw.as_ptr());
        }
    }
}
