#pragma once

namespace elastic::internal {

// Tells a forked child from the process that it was forked from. The mark is a page that the kernel
// gives to a child zeroed (MADV_WIPEONFORK), so neither a process id that looks the same in another
// namespace nor a raw clone() can deceive it, and asking costs one load. Before Linux 4.14 it is
// the process id.
class ForkMark {
 public:
  ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;

  // This process is the one from now on.
  void Set();
  // False in every process forked since Set.
  bool Here() const;

 private:
  unsigned* page_ = nullptr;  // null: there is none
  int pid_ = 0;
};

}  // namespace elastic::internal
