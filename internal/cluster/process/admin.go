package process

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster/line"
	"github.com/lockchaos/lockchaos/internal/cluster/resp"
)

// admin is the connection to a Redis server. It speaks enough of RESP2 to send commands in one round trip.
type admin struct {
	line.Line
	password string // empty: none
}

func newAdmin(addr, password string) *admin { return &admin{line.New(addr), password} }

// do sends commands in one round trip and returns a reply for each: string, int64,
// nil, []any or [resp.Error]. The error is about the connection, which is then closed;
// the next call opens another.
func (a *admin) do(ctx context.Context, commands ...[]string) (replies []any, err error) {
	err = a.Alone(ctx, "sending a command to", func(_ context.Context, fresh bool) (err error) {
		replies, err = a.exchange(commands, fresh && a.password != "")
		return err
	})
	if err != nil {
		return nil, err
	}
	return replies, nil
}

func (a *admin) exchange(commands [][]string, authenticates bool) ([]any, error) {
	var b []byte
	if authenticates {
		b = resp.AppendStrings(b, "AUTH", a.password)
	}
	for _, words := range commands {
		b = resp.AppendStrings(b, words...)
	}
	if _, err := a.Conn.Write(b); err != nil {
		return nil, err
	}
	if authenticates {
		if reply, err := resp.Read(a.In); err != nil || reply != "OK" {
			return nil, errors.Join(err, fmt.Errorf("authenticating: %v", reply))
		}
	}
	replies := make([]any, len(commands))
	for i := range replies {
		var err error
		if replies[i], err = resp.Read(a.In); err != nil {
			return nil, err
		}
	}
	return replies, nil
}
