package finding

// The reasons why a property is not applicable: the history has nothing that the property is about. For each reason
// testdata has two histories: one to which it applies, and one in which it would hide a violation.
const (
	NeverGranted     = "the lock was never granted"
	OnlySemaphores   = ", all of semaphores, which do not exclude: see permits"
	NothingPromised  = "every grant returned after its promise had ended: no client was promised the lock"
	NoSemaphore      = "no key was used as a semaphore"
	NoReader         = "no client acquired the lock as a reader"
	NoTokens         = "the lock issues no fencing tokens, and no resource checked one"
	NoWrites         = "no write reached a guarded resource"
	NoReplies        = "no release or renewal succeeded, and no loss was reported"
	NoCounts         = "no owner acquired the lock twice, and no reply had a hold count"
	UncertainCounts  = "no hold count is certain: each owner with one lost its hold, or an outcome of it is unknown"
	NothingToRecover = "no hold was left to its lease and followed by another grant, and no probe was granted"
	NoWaits          = "no client waited for the lock"
	NoOrder          = "the lock promises no order"
	NoWriterWaited   = "no writer certainly waited for the lock, which prefers writers, without a fault"
	NotChecked       = "the servers were not checked after the run"
	MaybeHeld        = "when the servers were checked, the lock may still have been held"
	NoLatch          = "no key was used as a latch"
	NoModel          = "no key was used as a lock that has a model"
)
