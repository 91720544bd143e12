package lock

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
)

//go:embed script
var scriptFiles embed.FS

// script is a Lua program and the digest under which servers cache it.
type script struct{ *scriptText }

type scriptText struct {
	source, digest string
	name           any // digest, as the word of a command
}

// newScript is the program that source and codes.lua before it make.
func newScript(source string) script {
	source = lua("codes") + source
	sum := sha1.Sum([]byte(source))
	digest := hex.EncodeToString(sum[:])
	return script{&scriptText{source: source, digest: digest, name: digest}}
}

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

// mutexScripts are those of mutexes. The client's own lease and TTL are part of them: to pass an argument
// takes the server as long as a cheap command.
type mutexScripts struct {
	acquire, acquireFenced script
	release, releasePlain  script // of a hold that was acquired with SET
	lease                  int64  // of an acquire that names none, in milliseconds
	leaseWord              any    // the same, as the word of a command
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

// The keys of the queue of a fair mutex and of a fair semaphore.
const (
	fairQueue   = "local queue, waiters = KEYS[3], KEYS[4]\n"
	permitQueue = "local queue, waiters = KEYS[5], KEYS[6]\n"
)

// Scripts that are the same for all clients.
var (
	renewScript    = newScript(lua("renew"))
	recordScript   = newScript(lua("record"))
	serverScript   = newScript(lua("server"))
	mintScript     = newScript(lua("mint") + "return mint(KEYS[1])\n")
	tokenScript    = newScript(lua("token"))
	inspectScript  = newScript(lua("plain", "inspect"))
	forceScript    = newScript(lua("plain", "force"))
	redissonScript = struct{ acquire, release, inspect, force script }{
		acquire: newScript(lua("foreign", "redisson_acquire")),
		release: newScript(lua("redisson_release")),
		inspect: newScript(lua("redisson", "redisson_inspect")),
		force:   newScript(lua("redisson", "redisson_force")),
	}
	// multiScript acquires each of several locks with the script of one.
	multiScript = newScript(lua("mint", "foreign", "plain") +
		"local function acquire(KEYS, ARGV)\nlocal defaultLease\n" + lua("acquire") +
		"\nend\n" + lua("multi_acquire"))

	fairScript = struct{ acquire, release, force, waiters script }{
		acquire: newScript(lua("foreign", "plain", "mint") + fairQueue + lua("queue", "fair_queue", "fair_acquire")),
		release: newScript(lua("foreign", "plain", "mint") + fairQueue + lua("queue", "fair_queue", "fair_release")),
		force:   newScript(lua("plain", "mint") + fairQueue + lua("queue", "fair_queue", "fair_force")),
		waiters: newScript(lua("mint") + fairQueue + lua("queue", "fair_queue", "fair_waiters")),
	}
	rwScript = struct{ acquire, release, renew, force, inspect script }{
		acquire: newScript(lua("mint", "rw_state", "rw_acquire")),
		release: newScript(lua("rw_state", "rw_release")),
		renew:   newScript(lua("rw_renew")),
		force:   newScript(lua("rw_state", "rw_force")),
		inspect: newScript(lua("rw_state", "rw_inspect")),
	}
	semaphoreScript = struct{ set, state, acquire, release script }{
		set:     newScript(lua("counted", "semaphore_set")),
		state:   newScript(lua("counted", "semaphore_state")),
		acquire: newScript(lua("counted", "semaphore_acquire")),
		release: newScript(lua("counted", "semaphore_release")),
	}
	permitScript = struct{ acquire, release, renew script }{
		acquire: newScript(lua("counted", "permits_acquire")),
		release: newScript(lua("counted", "permits_release")),
		renew:   newScript(lua("counted", "permits_renew")),
	}
	fairPermitScript = struct{ acquire, release script }{
		acquire: newScript(permitQueue + lua("counted", "queue", "fair_permits", "fair_permits_acquire", "permits_acquire")),
		release: newScript(permitQueue + lua("counted", "queue", "fair_permits", "fair_permits_leave", "permits_release")),
	}
	latchScript = struct{ arm, count, state, remove script }{
		arm:    newScript(lua("counted", "latch_arm")),
		count:  newScript(lua("counted", "latch_count")),
		state:  newScript(lua("counted", "latch_state")),
		remove: newScript(lua("counted", "latch_delete")),
	}
)
