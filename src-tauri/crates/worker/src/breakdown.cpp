// llama.cpp tells its memory to the byte through a C++ function only (its log rounds to 0.01 MiB).
// This is that function for C.

#include <cstddef>
#include <map>

#include "ggml-backend.h"
#include "llama.h"

// As llama.cpp's own `src/llama-ext.h` declares them; a test holds the numbers against the log.
struct llama_memory_breakdown_data {
    size_t model   = 0;
    size_t context = 0;
    size_t compute = 0;
};

std::map<ggml_backend_buffer_type_t, llama_memory_breakdown_data>
llama_get_memory_breakdown(const llama_context * ctx);

using twospeed_each = void (*)(void * data, const char * name, bool host, size_t model, size_t context,
                               size_t compute);

// Calls `each` once for every kind of buffer; false when llama.cpp could not say.
extern "C" bool twospeed_memory_breakdown(const llama_context * ctx, twospeed_each each, void * data) noexcept {
    try {
        for (const auto & [type, size] : llama_get_memory_breakdown(ctx)) {
            each(data, ggml_backend_buft_name(type), ggml_backend_buft_is_host(type), size.model, size.context,
                 size.compute);
        }
        return true;
    } catch (...) {
        return false;
    }
}
