package locks

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/client"
)

// connectServer is the go-redis client of one server.
func connectServer(s client.Setup, o *redis.Options) *redis.Client {
	c := redis.NewClient(o)
	if s.Order != nil {
		c.AddHook(orderHook{o.Addr, s.Order})
	}
	return c
}

// orderHook orders the commands of one instant before they compete for the connections of a pool: goroutines that
// run at one instant of virtual time would get them in the order in which Go happens to run them.
type orderHook struct {
	server string // its address
	order  func(server string, command func() string)
}

func (orderHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h orderHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.order(h.server, func() string { return commandText(cmd) })
		return next(ctx, cmd)
	}
}

func (h orderHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.order(h.server, func() string { return commandText(cmds...) })
		return next(ctx, cmds)
	}
}

// commandText is the text of cmds: arguments may be pointers, which differ from run to run.
func commandText(cmds ...redis.Cmder) string {
	var text strings.Builder
	for _, cmd := range cmds {
		for _, arg := range cmd.Args() {
			fmt.Fprintf(&text, " %v", reflect.Indirect(reflect.ValueOf(arg)))
		}
	}
	return text.String()
}
