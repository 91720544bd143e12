package checker

// The reasons why a property is not applicable: the history has nothing that the property is about. For each reason
// testdata has two histories: one to which it applies, and one in which it would hide a violation.
const (
	neverGranted     = "the lock was never granted"
	onlySemaphores   = ", all of semaphores, which do not exclude: see permits"
	nothingPromised  = "every grant returned after its promise had ended: no client was promised the lock"
	noSemaphore      = "no key was used as a semaphore"
	noReader         = "no client acquired the lock as a reader"
	noTokens         = "the lock issues no fencing tokens, and no resource checked one"
	noWrites         = "no write reached a guarded resource"
	noReplies        = "no release or renewal succeeded, and no loss was reported"
	noCounts         = "no owner acquired the lock twice, and no reply had a hold count"
	uncertainCounts  = "no hold count is certain: each owner with one lost its hold, or an outcome of it is unknown"
	nothingToRecover = "no hold was left to its lease and followed by another grant, and no probe was granted"
	noWaits          = "no client waited for the lock"
	noOrder          = "the lock promises no order"
	noWriterWaited   = "no writer certainly waited for the lock, which prefers writers, without a fault"
	notChecked       = "the servers were not checked after the run"
	maybeHeld        = "when the servers were checked, the lock may still have been held"
	noLatch          = "no key was used as a latch"
	noModel          = "no key was used as a lock that has a model"
)
