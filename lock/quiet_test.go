package lock

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
)

// quiet keeps go-redis from reporting every server that a test has killed.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	os.Exit(m.Run())
}
