package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// CodeHeld is the [Error] code of a try that failed because another owner held the lock. Only this
// code is evidence about the lock; a try may also fail because no server was reachable.
const CodeHeld = "held"

// CodeRefused is the [Error] code of a try that was refused, perhaps only because others wait, and of an acquire that
// does not wait until its wait is over, as documented.
const CodeRefused = "refused"

// CodeNoReply is the [Error] code of an acquire whose wait ran out before a server replied.
const CodeNoReply = "no-reply"

// CodeOneHeld is the [Error] code of an operation on several keys that failed because one of them is held. It is
// unknown which, so it is no evidence about any of them.
const CodeOneHeld = "one-held"

// CodeReentered is the [Error] code of an acquire or try by an owner that holds the lock and may not hold it twice.
const CodeReentered = "reentered"

// CodeUpgrade is the [Error] code of an acquire or try to write by an owner that reads, and would wait for itself.
const CodeUpgrade = "upgrade"

// CodeStale is the [Error] code of a guard whose token is older than an earlier one.
const CodeStale = "stale"

// CodeContradiction is the [Error] code of an operation about which the lock contradicts itself: its answers do not
// agree, or are against its documentation.
const CodeContradiction = "contradiction"

// CodeForeign is the [Error] code of an operation that was refused because the key holds something that is not a lock.
const CodeForeign = "foreign-key"

// CodeAbsent is the [Error] code of an operation that failed because the semaphore or the latch does not exist.
const CodeAbsent = "absent"

// CodeOutOfRange is the [Error] code of a request to acquire or to remove more permits than exist.
const CodeOutOfRange = "out-of-range"

// Codes of an [Error] that the harness writes where the client did not reply. The first three are also codes of a
// [Crash].
const (
	CodeExited   = "client-exited"   // its process has exited unexpectedly
	CodeKilled   = "client-killed"   // a fault has killed its process
	CodeProtocol = "client-protocol" // it violated the protocol, and was killed
	CodeTimeout  = "client-timeout"  // it did not reply in time
	CodeUnasked  = "client-error"    // the request could not be sent, or the run was abandoned before the reply
)

// typeWords are the words for the types in a history file.
func typeWords() [Info + 1]string {
	return [...]string{Invoke: "invoke", OK: "ok", Fail: "fail", Info: "info"}
}

// String returns the word for t in a history file.
func (t Type) String() string {
	if t < Invoke || t > Info {
		return "type(" + strconv.Itoa(int(t)) + ")"
	}
	return typeWords()[t]
}

// typeOf is the type with that word; 0: there is none.
func typeOf[T string | []byte](word T) Type {
	for t, known := range typeWords() {
		if string(word) == known && known != "" {
			return Type(t)
		}
	}
	return 0
}

// parseType is the inverse of [Type.String]. A leading colon, as in a Clojure keyword, is allowed.
func parseType(word string) (Type, error) {
	if t := typeOf(strings.TrimPrefix(word, ":")); t != 0 {
		return t, nil
	}
	return 0, fmt.Errorf("type %q: expected invoke, ok, fail or info", word)
}

// MarshalText returns [Type.String]; an invalid Type is an error.
func (t Type) MarshalText() ([]byte, error) {
	if t < Invoke || t > Info {
		return nil, fmt.Errorf("writing an event: invalid type %d", t)
	}
	return []byte(t.String()), nil
}

// UnmarshalText is the inverse of MarshalText.
func (t *Type) UnmarshalText(b []byte) error {
	parsed, err := parseType(string(b))
	*t = parsed
	return err
}

// MarshalJSON returns a number, or "nemesis".
func (p Process) MarshalJSON() ([]byte, error) {
	if p == Nemesis {
		return []byte(`"nemesis"`), nil
	}
	return strconv.AppendInt(nil, int64(p), 10), nil
}

// UnmarshalJSON reads a number or "nemesis".
func (p *Process) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"nemesis"`, `":nemesis"`:
		*p = Nemesis
		return nil
	}
	n, err := strconv.ParseInt(string(b), 10, 32)
	if err != nil || n < 0 {
		return fmt.Errorf(`process %s: expected an integer from 0 to 2147483647, or "nemesis"`, b)
	}
	*p = Process(n)
	return nil
}

// MarshalJSON returns ["code","text"], the form that Jepsen's tools expect.
func (e Error) MarshalJSON() ([]byte, error) {
	return json.Marshal([2]string{e.Code, e.Text})
}

// UnmarshalJSON reads ["code","text"], or a single string, which is the code.
func (e *Error) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*e = Error{}
		return json.Unmarshal(b, &e.Code)
	}
	var parts []string
	if err := json.Unmarshal(b, &parts); err != nil {
		return errors.New(`error: expected ["code","text"]`)
	}
	if len(parts) != 2 {
		return fmt.Errorf(`error: expected ["code","text"], got %d strings`, len(parts))
	}
	*e = Error{Code: parts[0], Text: parts[1]}
	return nil
}

// busy reports whether e is a try that failed because the lock was held.
func (e *Event) busy() bool {
	if e.F != Try || e.Type != Fail {
		return false
	}
	return e.Error == nil || e.Error.Code == CodeHeld || e.Error.Code == "busy"
}
