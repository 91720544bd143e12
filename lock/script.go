package lock

import (
	"embed"
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

//go:embed script
var scriptFiles embed.FS

// newScript is the program that source and codes.lua before it make.
func newScript(source string) wire.Script { return wire.NewScript(lua("codes") + source) }

// lua is the text of the scripts of these names, one after the other.
func lua(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		text, err := scriptFiles.ReadFile("script/" + name + ".lua")
		if err != nil {
			panic(err) // the names are constants
		}
		b.Write(text)
	}
	return b.String()
}

// mutexScripts are the scripts of mutexes. The client's own lease and TTL are part of them: to pass an argument
// takes the server as long as a cheap command.
type mutexScripts struct {
	acquire, acquireFenced wire.Script
	release, releasePlain  wire.Script // of a hold that was acquired with SET
	lease                  int64       // of an acquire that names none, in milliseconds
	leaseWord              any         // the same, as the word of a command
}

func newMutexScripts(o Options) *mutexScripts {
	lease := milliseconds(o.Lease)
	head := fmt.Sprintf("local defaultLease = '%d'\n", lease)
	ttl := fmt.Sprintf("local defaultTTL = '%d'\n", o.tombstoneTTL())
	return &mutexScripts{
		acquire:       newScript(head + lua("foreign", "plain", "acquire")),
		acquireFenced: newScript(head + lua("mint", "foreign", "plain", "acquire")),
		release:       newScript(ttl + lua("plain", "release")),
		releasePlain:  newScript(ttl + lua("release_plain", "plain", "release")),
		lease:         lease,
		leaseWord:     lease,
	}
}

// Scripts that are the same for all clients.
var (
	renewScript  = newScript(lua("renew"))
	recordScript = newScript(lua("record"))
	serverScript = newScript(lua("server"))
	mintScript   = newScript(lua("mint") + "return mint(KEYS[1])\n")
	tokenScript  = newScript(lua("token"))
	// lastTokenScript returns the last token, and mints one if there is none: readers that come together share it.
	lastTokenScript = newScript(lua("mint") + "return tonumber(redis.call('GET', KEYS[1])) or mint(KEYS[1])\n")
	inspectScript   = newScript(lua("plain", "inspect"))
	forceScript     = newScript(lua("plain", "publish_both", "force"))
	redissonScript  = struct{ acquire, release, inspect, force, token wire.Script }{
		acquire: newScript(lua("foreign", "redisson_acquire")),
		release: newScript(lua("redisson_release")),
		inspect: newScript(lua("redisson", "redisson_inspect")),
		force:   newScript(lua("redisson", "publish_both", "redisson_force")),
		token:   newScript(lua("redisson_token")),
	}
	// Those of keys whose slot migrates.
	movingQueueScript = newScript(lua("queue_moving"))
	leasesScript      = newScript(lua("rw_leases"))
	// multiScript acquires each of several locks with the script of one.
	multiScript = newScript(lua("mint", "foreign", "plain") +
		"local function acquire(KEYS, ARGV)\nlocal defaultLease\n" + lua("acquire") +
		"\nend\n" + lua("multi_acquire"))
)
