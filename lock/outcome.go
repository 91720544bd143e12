package lock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// outcome is what the error of a request says about the request.
type outcome int

const (
	notExecuted     outcome = iota + 1 // a retry may succeed
	rejected                           // not executed, and a retry would not be either
	unknown                            // it may have been executed
	underReplicated                    // executed, but too few replicas have it: to be undone
	broken                             // executed in part, and a retry would not get further: to be undone
)

// mayHaveHappened reports whether the servers may have done what was requested.
func (o outcome) mayHaveHappened() bool { return o == unknown || o == underReplicated || o == broken }

// reason is why a request failed, where that is known.
type reason int

const (
	closed         reason = iota + 1 // the client was closed
	foreign                          // a key holds something that is not a lock
	crossSlot                        // the keys are in more than one cluster slot
	unfitServer                      // the server is too old
	tooFewReplicas                   // too few replicas have the writes
)

// wireError is the error of one request.
type wireError struct {
	outcome outcome
	reason  reason // 0: err says all that is known
	err     error  // nil: the reason says all
}

// Error is the text of the error.
func (e *wireError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("request failed for reason %d", e.reason)
	}
	return e.err.Error()
}

// Unwrap is the error of go-redis.
func (e *wireError) Unwrap() error { return e.err }

// classify decides, here and nowhere else, what an error of go-redis says about a
// request that was given to it once.
func classify(err error) *wireError {
	if e := (*wireError)(nil); errors.As(err, &e) {
		return e
	}
	var server redis.Error
	var dial *net.OpError
	switch {
	case strings.HasPrefix(err.Error(), "redis: all sentinels"): // no connection was made
		return &wireError{outcome: notExecuted, err: err}
	case errors.As(err, &server):
		return classifyServer(err)
	case errors.Is(err, redis.ErrClosed):
		return &wireError{outcome: rejected, err: fmt.Errorf("the redis client is closed: %w", err)}
	case errors.As(err, &dial) && dial.Op == "dial",
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return &wireError{outcome: notExecuted, err: err}
	}
	return &wireError{outcome: unknown, err: err}
}

// rightsInScript are in the error of a script that runs a command for which its user has no rights: Redis before 7.2,
// and since then, as Valkey. Earlier commands of the script were executed.
const rightsInScript, aclInScript = "The user executing the script can't", "ACL failure in script"

// classifyServer is classify for an error reply. The scripts write only after all
// their checks, and their first write decides: an error means that nothing was written,
// unless it is about rights.
func classifyServer(err error) *wireError {
	if strings.Contains(err.Error(), rightsInScript) || strings.Contains(err.Error(), aclInScript) {
		return &wireError{outcome: broken, err: err}
	}
	for _, row := range []struct {
		part   string
		reason reason
	}{{"WRONGTYPE", foreign}, {"FOREIGN", foreign}, {"CROSSSLOT", crossSlot}} {
		if strings.Contains(err.Error(), row.part) {
			return &wireError{rejected, row.reason, err}
		}
	}
	temporary := redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsMasterDownError(err) ||
		redis.IsClusterDownError(err) || redis.IsTryAgainError(err) || redis.IsNoReplicasError(err) ||
		redis.IsMaxClientsError(err) || strings.Contains(err.Error(), "READONLY")
	for _, prefix := range []string{"BUSY", "MISCONF", "OOM", "NOSCRIPT", "UNBLOCKED", "MOVED", "ASK", "NOREPLICAS"} {
		temporary = temporary || redis.HasErrorPrefix(err, prefix) || strings.Contains(inScript(err), ": -"+prefix+" ")
	}
	if temporary {
		return &wireError{outcome: notExecuted, err: err}
	}
	if strings.Contains(err.Error(), "syntax error") { // the scripts use options of Redis 6.2, as SET with GET
		return &wireError{rejected, unfitServer, fmt.Errorf("Redis 6.2 or later is needed: %w", err)}
	}
	return &wireError{outcome: rejected, err: err}
}

// inScript is the error of a script, with that of its command at the end: Redis before 7.0 replies so. Empty: it is
// another error.
func inScript(err error) string {
	text := err.Error()
	if !strings.HasPrefix(text, "ERR Error running script") {
		return ""
	}
	return text
}

// notSent is the error of a request that was never given to go-redis.
func notSent(ctx context.Context) *wireError {
	return &wireError{outcome: notExecuted, err: context.Cause(ctx)}
}
