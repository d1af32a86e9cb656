#include "storage/compress.h"

#include <zstd.h>

#include <memory>

namespace keelson::storage {
namespace {

constexpr int kLevel = 3;

// zstd's working memory (about 160 kB), kept by each thread that decompresses: making it anew costs more than
// decompressing a definition.
ZSTD_DCtx* DecompressionContext() {
  thread_local const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  return context.get();
}

}  // namespace

bool AppendCompressed(std::string& out, std::string_view plain, std::string_view prefix) {
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), &ZSTD_freeCCtx);
  const std::size_t before = out.size();
  out.resize(before + ZSTD_compressBound(plain.size()));
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_refPrefix(context.get(), prefix.data(), prefix.size());
  const std::size_t size =
      ZSTD_compress2(context.get(), out.data() + before, out.size() - before, plain.data(), plain.size());
  const bool smaller = ZSTD_isError(size) == 0 && size < plain.size();
  out.resize(before + (smaller ? size : 0));
  return smaller;
}

bool Decompress(std::string_view packed, char* out, std::size_t size, std::string_view prefix) {
  ZSTD_DCtx* const context = DecompressionContext();
  ZSTD_DCtx_refPrefix(context, prefix.data(), prefix.size());
  return ZSTD_decompressDCtx(context, out, size, packed.data(), packed.size()) == size;
}

}  // namespace keelson::storage
