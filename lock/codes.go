package lock

import (
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// Codes of replies beside codeOK; script/codes.lua describes them.
const (
	codeRefused    = 0
	codeReleased   = -1
	codeNotHeld    = -2
	codeNotOwner   = -3
	codeReentered  = -4
	codeUpgrade    = -5
	codeAbsent     = -6
	codeOutOfRange = -7
	codeRearmed    = -8
	codeUnsure     = -9
)

// codeError is the error that the code stands for, if any.
func codeError(r wire.Reply) error {
	var err error
	switch r.Code {
	case codeReleased:
		err = ErrReleased
	case codeReentered:
		err = ErrReentered
	case codeUpgrade:
		err = ErrUpgrade
	case codeAbsent:
		err = ErrAbsent
	case codeOutOfRange:
		err = ErrPermits
	case codeRearmed:
		err = ErrRearmed
	default:
		return nil
	}
	return &requestError{wire.Rejected, err}
}
