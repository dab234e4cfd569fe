// Files that a test host wants to read and that are not there: a judge that compares zeros with zeros passes.
// Included in front of a host's main.cpp alone.
#pragma once
#include <fstream>
#include <string>
#include <sys/stat.h>

namespace pto::machine {
extern std::string missingFile;  // the first of them
template <class P> void noteMissing(const P& path)
{
    if (!missingFile.empty()) return;
    if constexpr (std::is_convertible_v<const P&, std::string>) missingFile = path;
    else missingFile = path.string();
}
inline int statNoted(const char* path, struct stat* found)
{
    const int status = (::stat)(path, found);
    if (status != 0) noteMissing(path);
    return status;
}
struct NotedFile : std::ifstream {
    NotedFile() = default;
    template <class P> explicit NotedFile(const P& path, std::ios_base::openmode mode = std::ios_base::in)
        : std::ifstream(path, mode) { if (!is_open()) noteMissing(path); }
    template <class P> void open(const P& path, std::ios_base::openmode mode = std::ios_base::in)
    {
        std::ifstream::open(path, mode);
        if (!is_open()) noteMissing(path);
    }
};
}
namespace std { using pto_machine_ifstream = pto::machine::NotedFile; }
#define ifstream pto_machine_ifstream
#define stat(path, found) pto::machine::statNoted(path, found)
