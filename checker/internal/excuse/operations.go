package excuse

import (
	"github.com/lockchaos/lockchaos/history"
)

// IsAcquire reports whether an operation asks for the lock.
func IsAcquire(op history.Op) bool { return op == history.OpAcquire || op == history.OpTry }

// IsLockOp reports whether s acquires or releases the lock.
func IsLockOp(s *history.Span) bool { return IsAcquire(s.Op) || s.Op == history.OpRelease }
