/* What arrays need to know of an archive: a member as a libzip stream. */
#ifndef IO_ARCHIVE_H
#define IO_ARCHIVE_H

#include <zip.h>

#include "io/array.h"

/* Opens the stream of a member and tells its uncompressed size; NULL with *error filled. */
zip_file_t *archive_open_file(const io_archive *archive, const char *member, int64_t *bytes, io_error *error);
const char *archive_name(const io_archive *archive);

#endif
