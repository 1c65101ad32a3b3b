// Tells ThreadSanitizer what Abseil's locks order. Debian builds Abseil without
// it, so it sees neither the locks nor what they guard. Linked into the tests
// of the tsan preset, these functions stand before the library's own of the
// same names, for our code and for gRPC's.
#include <dlfcn.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}

namespace {

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// The condition of a wait on `mutex`. It is evaluated with the mutex held, by
// the waiter or by whoever unlocks: what it reads comes before the next lock.
class SeenCondition {
 public:
  SeenCondition(void* mutex, const void* condition)
      : mutex_(mutex),
        condition_(static_cast<const absl::Condition*>(condition)),
        seen_(&SeenCondition::Evaluate, this) {
    __tsan_release(mutex_);
  }
  const void* get() const { return &seen_; }

 private:
  static bool Evaluate(SeenCondition* self) {
    __tsan_acquire(self->mutex_);
    const bool result = self->condition_->Eval();
    __tsan_release(self->mutex_);
    return result;
  }

  void* const mutex_;
  const absl::Condition* const condition_;
  const absl::Condition seen_;
};

}  // namespace

// The namespace that Debian's Abseil has in its symbols.
#define LOCKSTEP_ABSL "_ZN4absl7debian3"
#define LOCKSTEP_ABSL_CONST "_ZNK4absl7debian3"

// A function in the place of `symbol`: does `before`, calls what comes next,
// and `after` it.
#define LOCKSTEP_SYNC(id, symbol, result, parameters, arguments, before, \
                      after)                                             \
  extern "C" result id parameters __asm__(symbol);                       \
  extern "C" result id parameters {                                      \
    using Function = result parameters;                                  \
    static Function* const next = Next<Function>(symbol);                \
    before;                                                              \
    after(next arguments);                                               \
  }

#define LOCKSTEP_RELEASE(address) __tsan_release(address)
#define LOCKSTEP_SEEN const SeenCondition seen(a, b)
#define LOCKSTEP_NOTHING static_cast<void>(0)
#define LOCKSTEP_ACQUIRE_FIRST(call) \
  call;                              \
  __tsan_acquire(a)
#define LOCKSTEP_ACQUIRE_SECOND(call) \
  call;                               \
  __tsan_acquire(b)
#define LOCKSTEP_ACQUIRE_FIRST_RETURN(call) \
  const bool result = call;                 \
  __tsan_acquire(a);                        \
  return result
#define LOCKSTEP_ACQUIRE_SECOND_RETURN(call) \
  const bool result = call;                  \
  __tsan_acquire(b);                         \
  return result
#define LOCKSTEP_ACQUIRE_IF(call) \
  const bool result = call;       \
  if (result) __tsan_acquire(a);  \
  return result
#define LOCKSTEP_CALL(call) call

// Mutex: a is the mutex, b a condition.
LOCKSTEP_SYNC(MutexLock, LOCKSTEP_ABSL "5Mutex4LockEv", void, (void* a), (a),
              LOCKSTEP_NOTHING, LOCKSTEP_ACQUIRE_FIRST)
LOCKSTEP_SYNC(MutexUnlock, LOCKSTEP_ABSL "5Mutex6UnlockEv", void, (void* a),
              (a), LOCKSTEP_RELEASE(a), LOCKSTEP_CALL)
LOCKSTEP_SYNC(MutexTryLock, LOCKSTEP_ABSL "5Mutex7TryLockEv", bool, (void* a),
              (a), LOCKSTEP_NOTHING, LOCKSTEP_ACQUIRE_IF)
LOCKSTEP_SYNC(MutexReaderLock, LOCKSTEP_ABSL "5Mutex10ReaderLockEv", void,
              (void* a), (a), LOCKSTEP_NOTHING, LOCKSTEP_ACQUIRE_FIRST)
LOCKSTEP_SYNC(MutexReaderUnlock, LOCKSTEP_ABSL "5Mutex12ReaderUnlockEv", void,
              (void* a), (a), LOCKSTEP_RELEASE(a), LOCKSTEP_CALL)
LOCKSTEP_SYNC(MutexReaderTryLock, LOCKSTEP_ABSL "5Mutex13ReaderTryLockEv", bool,
              (void* a), (a), LOCKSTEP_NOTHING, LOCKSTEP_ACQUIRE_IF)
LOCKSTEP_SYNC(MutexAwait, LOCKSTEP_ABSL "5Mutex5AwaitERKNS0_9ConditionE", void,
              (void* a, const void* b), (a, seen.get()), LOCKSTEP_SEEN,
              LOCKSTEP_ACQUIRE_FIRST)
LOCKSTEP_SYNC(MutexAwaitWithTimeout,
              LOCKSTEP_ABSL
              "5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE",
              bool, (void* a, const void* b, absl::Duration c),
              (a, seen.get(), c), LOCKSTEP_SEEN, LOCKSTEP_ACQUIRE_FIRST_RETURN)
LOCKSTEP_SYNC(MutexAwaitWithDeadline,
              LOCKSTEP_ABSL
              "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE",
              bool, (void* a, const void* b, absl::Time c), (a, seen.get(), c),
              LOCKSTEP_SEEN, LOCKSTEP_ACQUIRE_FIRST_RETURN)
LOCKSTEP_SYNC(MutexLockWhen, LOCKSTEP_ABSL "5Mutex8LockWhenERKNS0_9ConditionE",
              void, (void* a, const void* b), (a, seen.get()), LOCKSTEP_SEEN,
              LOCKSTEP_ACQUIRE_FIRST)
LOCKSTEP_SYNC(MutexLockWhenWithTimeout,
              LOCKSTEP_ABSL
              "5Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE",
              bool, (void* a, const void* b, absl::Duration c),
              (a, seen.get(), c), LOCKSTEP_SEEN, LOCKSTEP_ACQUIRE_FIRST_RETURN)
LOCKSTEP_SYNC(MutexLockWhenWithDeadline,
              LOCKSTEP_ABSL
              "5Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE",
              bool, (void* a, const void* b, absl::Time c), (a, seen.get(), c),
              LOCKSTEP_SEEN, LOCKSTEP_ACQUIRE_FIRST_RETURN)

// CondVar: b is the mutex.
LOCKSTEP_SYNC(CondVarWait, LOCKSTEP_ABSL "7CondVar4WaitEPNS0_5MutexE", void,
              (void* a, void* b), (a, b), LOCKSTEP_RELEASE(b),
              LOCKSTEP_ACQUIRE_SECOND)
LOCKSTEP_SYNC(CondVarWaitWithTimeout,
              LOCKSTEP_ABSL
              "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE",
              bool, (void* a, void* b, absl::Duration c), (a, b, c),
              LOCKSTEP_RELEASE(b), LOCKSTEP_ACQUIRE_SECOND_RETURN)
LOCKSTEP_SYNC(CondVarWaitWithDeadline,
              LOCKSTEP_ABSL "7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE",
              bool, (void* a, void* b, absl::Time c), (a, b, c),
              LOCKSTEP_RELEASE(b), LOCKSTEP_ACQUIRE_SECOND_RETURN)

// Notification: its flag, which is read inline, lies behind a mutex of 8 bytes.
LOCKSTEP_SYNC(NotificationNotify, LOCKSTEP_ABSL "12Notification6NotifyEv", void,
              (void* a), (a), LOCKSTEP_RELEASE(a);
              LOCKSTEP_RELEASE(static_cast<char*>(a) + 8), LOCKSTEP_CALL)
LOCKSTEP_SYNC(NotificationWait,
              LOCKSTEP_ABSL_CONST "12Notification19WaitForNotificationEv", void,
              (void* a), (a), LOCKSTEP_NOTHING, LOCKSTEP_ACQUIRE_FIRST)
LOCKSTEP_SYNC(NotificationWaitWithTimeout,
              LOCKSTEP_ABSL_CONST
              "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE",
              bool, (void* a, absl::Duration b), (a, b), LOCKSTEP_NOTHING,
              LOCKSTEP_ACQUIRE_FIRST_RETURN)
LOCKSTEP_SYNC(NotificationWaitWithDeadline,
              LOCKSTEP_ABSL_CONST
              "12Notification31WaitForNotificationWithDeadlineENS0_4TimeE",
              bool, (void* a, absl::Time b), (a, b), LOCKSTEP_NOTHING,
              LOCKSTEP_ACQUIRE_FIRST_RETURN)

LOCKSTEP_SYNC(BlockingCounterDecrement,
              LOCKSTEP_ABSL "15BlockingCounter14DecrementCountEv", bool,
              (void* a), (a), LOCKSTEP_RELEASE(a),
              LOCKSTEP_ACQUIRE_FIRST_RETURN)
LOCKSTEP_SYNC(BlockingCounterWait, LOCKSTEP_ABSL "15BlockingCounter4WaitEv",
              void, (void* a), (a), LOCKSTEP_NOTHING, LOCKSTEP_ACQUIRE_FIRST)
LOCKSTEP_SYNC(BarrierBlock, LOCKSTEP_ABSL "7Barrier5BlockEv", bool, (void* a),
              (a), LOCKSTEP_RELEASE(a), LOCKSTEP_ACQUIRE_FIRST_RETURN)
