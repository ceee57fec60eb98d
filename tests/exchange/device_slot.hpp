// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// One slot of a rank on a device: everything is copied there and back, and compared with the
/// oracle.
#pragma once

#include "exchange/rank_run.hpp"

#include <ferry/exec/device.hpp>

#include <memory>
#include <stdexcept>

namespace ferry::oracle {

/// Memory of a device that holds copies of the test's own. All of it is allocated at first: a GPU's
/// runtime may wait in an allocation for the kernels of other ranks, which may wait for this one.
class device_copies {
 public:
  explicit device_copies(device const& where, std::size_t bytes = std::size_t{4} << 20)
      : queue_(queue::on(where).value()), all_(where.allocate(memory_kind::local, bytes).value()) {}

  /// Forgets all copies.
  void reset() { used_ = 0; }

  template <class T>
  T* there(T const* from, std::size_t items) {
    if (items == 0 || !from) return nullptr;
    std::byte* const at = all_.data() + used_;
    used_ += round_up(items * sizeof(T), std::size_t{256});
    if (used_ > all_.size()) throw std::runtime_error("too many copies on the device");
    queue_.copy(at, from, items * sizeof(T)).value();
    queue_.wait(std::chrono::seconds(60)).value();
    return reinterpret_cast<T*>(at);
  }
  void back(void* to, void const* from, std::size_t bytes) {
    if (bytes == 0) return;
    queue_.copy(to, from, bytes).value();
    queue_.wait(std::chrono::seconds(60)).value();
  }
  tensor there(typed_rows const& rows) {
    tensor t = rows.view();
    t.data = there(t.data, static_cast<std::size_t>(t.rows * t.stride_bytes()));
    return t;
  }

 private:
  queue queue_;
  device_memory all_;
  std::size_t used_ = 0;
};

/// What the experts received, in memory of the host.
class received_copy {
 public:
  received_copy(received const& view, device_copies& from) : view_(view) {
    auto const experts = static_cast<std::size_t>(view.num_local_experts);
    rows_.resize(static_cast<std::size_t>(view.rows.rows * view.rows.stride_bytes()));
    scales_.resize(static_cast<std::size_t>(view.scales.rows * view.scales.row_stride));
    index_.resize(view.index ? static_cast<std::size_t>(view.capacity) : 0);
    starts_.resize(experts);
    counts_.resize(experts);
    from.back(rows_.data(), view.rows.data, rows_.size());
    from.back(scales_.data(), view.scales.data, scales_.size());
    from.back(index_.data(), view.index, index_.size() * sizeof(std::int32_t));
    from.back(starts_.data(), view.starts, experts * sizeof(std::int32_t));
    from.back(counts_.data(), view.counts, experts * sizeof(std::int32_t));
    from.back(&end_, view.end, sizeof end_);
    view_.rows.data = rows_.data();
    if (view.scales.data) view_.scales.data = scales_.data();
    if (view.index) view_.index = index_.data();
    view_.starts = starts_.data();
    view_.counts = counts_.data();
    view_.end = &end_;
  }
  received const& view() const { return view_; }

 private:
  received view_;
  std::vector<std::byte> rows_, scales_;
  std::vector<std::int32_t> index_, starts_, counts_;
  std::int32_t end_ = 0;
};

/// The inputs of one step on the device.
inline dispatch_input on_device(brought_memory const& from, device_copies& to) {
  dispatch_input d = from.input;
  d.tokens = to.there(from.rows);
  auto const choices = static_cast<std::size_t>(d.choices.rows * d.choices.row_stride);
  if (d.choices.type == id_type::int32)
    d.choices.data = to.there(from.ids32.data(), choices);
  else
    d.choices.data = to.there(from.ids64.data(), choices);
  if (d.weights.data) d.weights.data = to.there(from.weights.data(), choices);
  if (d.scales.data) d.scales.data = to.there(from.scales.data(), from.scales.size());
  if (d.num_tokens) d.num_tokens = to.there(&from.num_tokens, 1);
  return d;
}

/// Driven phase by phase, like rank_slot.
class device_slot {
 public:
  device_slot(world const& w, int rank, int slot, exchange& ep, device const& where,
              complaints& wrong)
      : w_(w),
        rank_(rank),
        slot_(slot),
        at_(ep.microbatch(slot)),
        where_(where),
        wrong_(wrong),
        random_(static_cast<std::uint64_t>(slot * 1000 + rank)),
        copies_(std::make_unique<device_copies>(where)) {}

  int steps_done() const { return number_; }
  bool idle() const { return phase_ == 0; }

  bool advance(queue& q) {
    switch (phase_++) {
      case 0: return send(q);
      case 1: return accepted("dispatch_receive", at_.dispatch_receive(q, budget()));
      case 2:
        if (!look(q)) return false;
        if (current().released) return close(accepted("release", at_.release(q, budget())));
        return accepted("combine_send", at_.combine_send(q, made_there_, budget()));
      default: return close(gather(q));
    }
  }

 private:
  step const& current() const {
    return w_.steps[static_cast<std::size_t>(number_ + slot_ * 3) % w_.steps.size()];
  }
  rank_step const& mine() const { return current().brought[static_cast<std::size_t>(rank_)]; }
  std::string here() const {
    return fmt::format("rank {} slot {} step {} on {}: ", rank_, slot_, number_, where_.name());
  }
  step_check now() const { return {w_, current(), rank_, here(), wrong_}; }
  template <class T>
  bool accepted(char const* call, result<T> const& r) {
    if (!r) wrong_.add(here() + call + ": " + r.error().message);
    return r.has_value();
  }
  bool close(bool ok) {
    phase_ = 0;
    ++number_;
    return ok;
  }

  // Each rank's own business, call by call.
  call_options budget() { return {.blocks = pick(random_, 0, w_.options.blocks)}; }

  bool send(queue& q) {
    // The kernels that read the last step's memory are done: gather() has waited.
    copies_->reset();
    brought_.emplace(w_, mine(), random_);
    input_ = on_device(*brought_, *copies_);
    return accepted("dispatch_send", at_.dispatch_send(q, input_, budget()));
  }

  // What was received, and whether an overflow was reported by wait().
  bool look(queue& q) {
    rank_received const& want = current().received[static_cast<std::size_t>(rank_)];
    result<void> const waited = at_.wait(q);
    if (want.overflowing >= 0) {
      if (waited) return wrong_.add(here() + "capacity was not reported"), true;
      now().overflow(waited.error());
      if (waited.error().code != error_code::capacity) return false;
    } else if (!accepted("wait", waited)) {
      return false;
    }
    received_copy const got(at_.last_received(), *copies_);
    now().groups(got.view());
    now().rows(got.view());
    typed_rows const made = now().experts(got.view());
    // On a device there is a row for each position.
    typed_rows all(got.view().capacity, w_.options.hidden, w_.options.expert_rows, rank_ % 2);
    if (made.view().rows > 0)
      std::copy_n(made.view().data, made.view().rows * made.view().stride_bytes(), all.view().data);
    made_there_ = copies_->there(all);
    return true;
  }

  bool gather(queue& q) {
    exchange_options const& o = w_.options;
    rank_step const& s = mine();
    std::int64_t const gap = pick(random_, 0, 4);
    std::int64_t const rows = input_.tokens.rows;  // that T may be, as far as the host knows
    typed_rows output(std::min<std::int64_t>(rows, o.max_tokens), o.hidden, o.output, gap);
    typed_rows added;
    bool const aliased = s.adds && one_in(random_, 2);
    if (s.adds && !aliased) added = typed_rows(output.view().rows, o.hidden, o.output, 3);
    typed_rows& addend = aliased ? output : added;
    if (s.adds)
      for (int t = 0; t < s.tokens; ++t)
        for (int c = 0; c < o.hidden; ++c)
          addend.set(t, c, s.added[static_cast<std::size_t>(t * o.hidden + c)]);
    tensor const there = copies_->there(output);
    const_tensor const added_there = !s.adds   ? const_tensor{}
                                     : aliased ? const_tensor(there)
                                               : const_tensor(copies_->there(added));
    if (!accepted("combine_receive", at_.combine_receive(q, there, added_there, budget())))
      return false;
    if (!accepted("wait", at_.wait(q))) return false;
    copies_->back(output.view().data, there.data,
                  static_cast<std::size_t>(there.rows * there.stride_bytes()));
    now().output(output);
    return true;
  }

  world const& w_;
  int rank_, slot_;
  microbatch& at_;
  device where_;
  complaints& wrong_;
  dice random_;
  int number_ = 0;
  int phase_ = 0;
  std::unique_ptr<device_copies> copies_;
  std::optional<brought_memory> brought_;
  dispatch_input input_;
  tensor made_there_;
};

}  // namespace ferry::oracle
