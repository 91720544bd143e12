package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Outcome says whether a request that failed was executed.
type Outcome int

// The outcomes.
const (
	NotExecuted     Outcome = iota + 1 // a retry may succeed
	Rejected                           // not executed, and a retry would not be either
	Unknown                            // it may have been executed
	UnderReplicated                    // executed, but too few replicas have it: to be undone
	Broken                             // executed in part, and a retry would not get further: to be undone
)

// MayHaveHappened reports whether the servers may have executed the request.
func (o Outcome) MayHaveHappened() bool { return o == Unknown || o == UnderReplicated || o == Broken }

// Reason is the kind of a failure; 0: none of these.
type Reason int

// The reasons.
const (
	Closed         Reason = iota + 1 // the client was closed
	Foreign                          // a key holds something that is not a lock
	CrossSlot                        // the keys are in more than one cluster slot
	Unfit                            // the server is too old
	TooFewReplicas                   // too few replicas have the writes
)

// Error is the error of one request. Package lock makes it one of its own errors.
type Error struct {
	Outcome Outcome
	Reason  Reason // 0: Err has all details
	Err     error  // of go-redis; nil: Reason has all details
}

// Error is the text of the error.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("request failed for reason %d", e.Reason)
	}
	return e.Err.Error()
}

// Unwrap is the error of go-redis.
func (e *Error) Unwrap() error { return e.Err }

// Classify returns the outcome of a request that was given to go-redis once and has failed with err, and the reason.
// No other function decides that.
func Classify(err error) *Error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	var server redis.Error
	var dial *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case strings.HasPrefix(err.Error(), "redis: all sentinels"), errors.As(err, &certificate): // nothing was sent
		return &Error{Outcome: NotExecuted, Err: err}
	case errors.As(err, &server):
		return classifyServer(err)
	case errors.Is(err, redis.ErrClosed):
		return &Error{Outcome: Rejected, Err: fmt.Errorf("the redis client is closed: %w", err)}
	case errors.As(err, &dial) && dial.Op == "dial",
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return &Error{Outcome: NotExecuted, Err: err}
	}
	return &Error{Outcome: Unknown, Err: err}
}

// oldRedis is the reason of errors of servers that lack a feature.
const oldRedis = "Redis 6.2 or later is needed"

// rightsInScript are in the error of a script that runs a command for which its user has no rights: Redis before 7.2,
// and since then, as Valkey. Earlier commands of the script were executed.
const rightsInScript, aclInScript = "The user executing the script can't", "ACL failure in script"

// classifyServer is classify for an error reply. The scripts write only after all
// their checks, and their first write decides: an error means that nothing was written,
// unless it is about rights.
func classifyServer(err error) *Error {
	if strings.Contains(err.Error(), rightsInScript) || strings.Contains(err.Error(), aclInScript) {
		return &Error{Outcome: Broken, Err: err}
	}
	for _, row := range []struct {
		part   string
		reason Reason
	}{{"WRONGTYPE", Foreign}, {"FOREIGN", Foreign}, {"CROSSSLOT", CrossSlot}} {
		if strings.Contains(err.Error(), row.part) {
			return &Error{Rejected, row.reason, err}
		}
	}
	temporary := redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsMasterDownError(err) ||
		redis.IsClusterDownError(err) || redis.IsTryAgainError(err) || redis.IsNoReplicasError(err) ||
		redis.IsMaxClientsError(err) || strings.Contains(err.Error(), "READONLY")
	for _, prefix := range []string{"BUSY", "MISCONF", "OOM", "NOSCRIPT", "UNBLOCKED", "MOVED", "ASK", "NOREPLICAS"} {
		temporary = temporary || redis.HasErrorPrefix(err, prefix) || strings.Contains(inScript(err), ": -"+prefix+" ")
	}
	if temporary {
		return &Error{Outcome: NotExecuted, Err: err}
	}
	if strings.Contains(err.Error(), "syntax error") { // the scripts use options of Redis 6.2, as SET with GET
		return &Error{Rejected, Unfit, fmt.Errorf("%s: %w", oldRedis, err)}
	}
	return &Error{Outcome: Rejected, Err: err}
}

// inScript is the error of a script, with its command's at the end: Redis before 7.0 replies so. Empty: it is another
// error.
func inScript(err error) string {
	text := err.Error()
	if !strings.HasPrefix(text, "ERR Error running script") {
		return ""
	}
	return text
}

// NotSent is the error of a request that was never given to go-redis.
func NotSent(ctx context.Context) *Error {
	return &Error{Outcome: NotExecuted, Err: context.Cause(ctx)}
}
