// Files that a test host wants to read and that are not there: a judge that compares zeros with zeros passes.
// Included in front of a host's main.cpp alone.
#pragma once
#include <fstream>
#include <sys/stat.h>

namespace pto::machine {
extern int64_t missingFiles;
inline int statNoted(const char* path, struct stat* found)
{
    const int status = (::stat)(path, found);
    missingFiles += status != 0;
    return status;
}
struct NotedFile : std::ifstream {
    NotedFile() = default;
    template <class P> explicit NotedFile(const P& path, std::ios_base::openmode mode = std::ios_base::in)
        : std::ifstream(path, mode) { missingFiles += !is_open(); }
    template <class P> void open(const P& path, std::ios_base::openmode mode = std::ios_base::in)
    {
        std::ifstream::open(path, mode);
        missingFiles += !is_open();
    }
};
}
namespace std { using pto_machine_ifstream = pto::machine::NotedFile; }
#define ifstream pto_machine_ifstream
#define stat(path, found) pto::machine::statNoted(path, found)
