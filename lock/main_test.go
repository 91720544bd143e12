package lock

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
)

// discardLogger keeps go-redis from logging every server that a test has killed.
type discardLogger struct{}

func (discardLogger) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(discardLogger{})
	os.Exit(m.Run())
}
