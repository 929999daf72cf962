//! The process that runs llama.cpp.
