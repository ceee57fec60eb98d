// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The same exchange as users of MPI write it.
#pragma once

#include "subject.hpp"

#include <mpi.h>

namespace ferry::bench {

/// What travels: a record for each (token, rank), as a careful user packs it, or one for each
/// choice.
enum class packing { per_rank, per_choice };

/// Dispatch: pack records (row, scales, token, local experts, weights) by rank; MPI_Alltoall of the
/// counts, MPI_Alltoallv of the records; lay the rows before the experts where ferry's layout does.
/// Combine: sum or pack the experts' rows, MPI_Alltoallv back, sum per token. All buffers are made
/// once. Quantises nothing: it is given rows in wire format, which flatters it. The slots of a case
/// come one after the other, on the thread that initialised MPI.
class mpi_subject final : public subject {
 public:
  static result<std::unique_ptr<mpi_subject>> make(MPI_Comm communicator, workload const& work,
                                                   packing how);
  ~mpi_subject() override;

  std::string name() const override { return how_ == packing::per_rank ? "mpi" : "mpi-naive"; }
  result<void> before(int iteration) override;
  result<void> run(int iteration) override;
  result<void> check(int iteration) const override;

 private:
  /// Items per rank and where each rank's begin.
  struct shares {
    std::vector<int> counts, starts;
    explicit shares(int ranks)
        : counts(static_cast<std::size_t>(ranks)), starts(static_cast<std::size_t>(ranks)) {}
    void number();
    int total() const { return starts.back() + counts.back(); }
  };

  mpi_subject(MPI_Comm communicator, workload const& work, packing how);
  result<void> allocate();
  bool rows_are_summed() const;
  template <class F>
  void for_each_record(int token, F&& f) const;
  void pack(caller_rows const& rows);
  void lay_out();
  void pack_results(caller_rows const& rows);
  void gather(caller_rows const& rows);
  result<void> dispatch(int iteration, int slot);
  result<void> combine(int iteration, int slot);

  MPI_Comm communicator_;
  workload const& work_;
  packing how_;
  int choices_;               ///< of a record
  std::size_t route_at_ = 0;  ///< within a record
  std::size_t record_bytes_ = 0;
  MPI_Datatype record_ = MPI_DATATYPE_NULL, row_ = MPI_DATATYPE_NULL;
  shares sent_, received_, home_sent_, home_received_;
  window out_, in_, home_out_, home_in_, positions_;
  std::vector<std::int64_t> next_;  ///< [local experts]
  std::vector<int> rows_;           ///< [local experts]
  std::vector<std::int32_t> at_;    ///< [received records, choices] position, or -1
};

}  // namespace ferry::bench
