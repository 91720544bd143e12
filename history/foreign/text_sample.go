package foreign

import (
	"errors"
	"strings"

	"github.com/lockchaos/lockchaos/history"
)

// textSample reads a line such as "witness n1 1.500 orders owner=a count=1 ttl=2s" without its first word: the node,
// the time, or the times of the request and of its reply ("1.499-1.500"), and the key that is held there, if any. A
// node without role=slave is a master; a node that is down has no reply.
func textSample(samples []history.Sample, fields []string) ([]history.Sample, error) {
	if len(fields) < 2 {
		return nil, errors.New("expected witness NODE TIME[-TIME] [down] [role=slave] [KEY [owner=NAME] [count=N] " +
			"[ttl=TIME]]")
	}
	from, to, isSpan := strings.Cut(fields[1], "-")
	sent, err := textTime(from)
	at := sent
	if err == nil && isSpan {
		at, err = textTime(to)
	}
	if err == nil && at < sent {
		err = errors.New("the reply to a sample is earlier than its request")
	}
	if err != nil {
		return nil, err
	}
	s := history.Sample{Node: fields[0], Sent: sent, Time: at, Up: true, Role: "master"}
	key, state := "", history.KeyState{TTL: -1}
	parts := textFields{
		"role": &s.Role, "owner": &state.Owner, "count": &state.Count, "ttl": &state.TTL, "permits": &state.Permits,
		"limit": &state.Limit, "session": &state.Session,
		"readers": func(value string) {
			state.Owners, state.Mode = strings.Split(value, ","), "read"
			state.Owner = state.Owners[0]
		},
	}
	var values []string
	for _, field := range fields[2:] {
		switch {
		case field == "down":
			s.Up, s.Role = false, ""
		case !strings.Contains(field, "="):
			key = field
		default:
			values = append(values, field)
		}
	}
	err = parts.setAll(values, "a sample; it has role, owner, count, ttl, session, readers, permits and limit")
	if err != nil {
		return nil, err
	}
	if key != "" {
		s.Keys = map[string]history.KeyState{key: state}
	}
	return append(samples, s), nil
}

// textReceived reads a line such as "received n1 1.500 client=0 dials=2 channels=1 commands=9 key=orders requests=7"
// without its first word: a sample of a master with the counts of one client process so far.
func textReceived(samples []history.Sample, fields []string) ([]history.Sample, error) {
	if len(fields) < 2 {
		return nil, errors.New("expected received NODE TIME client=N [dials=N] [channels=N] [commands=N] " +
			"[key=NAME requests=N]")
	}
	at, err := textTime(fields[1])
	if err != nil {
		return nil, err
	}
	key, r := "", history.Received{}
	requests := 0
	parts := textFields{
		"client": &r.Client, "clients": &r.Clients, "dials": &r.Dials, "open": &r.Open, "channels": &r.Channels,
		"commands": &r.Commands, "key": &key, "requests": &requests,
	}
	if err := parts.setAll(fields[2:], "what was received"); err != nil {
		return nil, err
	}
	if key != "" {
		r.Keys = map[string]int{key: requests}
	}
	s := history.Sample{Node: fields[0], Sent: at, Time: at, Up: true, Role: "master", Received: []history.Received{r}}
	return append(samples, s), nil
}
