/* Visibility of the public functions and C++ linkage; included by every public header. */
#ifndef EPLB_EXPORT_H
#define EPLB_EXPORT_H

#if defined(__GNUC__) || defined(__clang__)
#define EPLB_API __attribute__((visibility("default")))
#else
#define EPLB_API
#endif

#ifdef __cplusplus
#define EPLB_BEGIN_DECLS extern "C" {
#define EPLB_END_DECLS   }
#else
#define EPLB_BEGIN_DECLS
#define EPLB_END_DECLS
#endif

#endif
