-- What the first integer of a reply means; comes before every script.
--
-- A reply is a list: a code, then the values that the script names, which a negative code may leave
-- out. A lone integer is short for it: a negative one is a code, any other n stands for {OK, n}.
--
-- Arguments come in one order in all scripts; what a script has no use for is left out. KEYS: the
-- lock, semaphore or latch, its tombstone, the script's own keys, channels. ARGV: the hold, a time in
-- ms (the lease, or the TTL of the tombstone), the owner, flags, the script's own, ids if there may be
-- several.
local OK, REFUSED = 1, 0 -- granted or done; not now
local RELEASED = -1      -- the hold was released before
local NOT_HELD = -2      -- the hold does not exist
local NOT_OWNER = -3     -- nor does it, and another owner has the lock
local REENTERED = -4     -- the owner holds the lock, and asked not to hold it twice
local UPGRADE = -5       -- the owner reads, and would wait for itself to write
local ABSENT = -6        -- the semaphore or latch was not set up
local OUT_OF_RANGE = -7  -- more permits than there are, or fewer than none
local REARMED = -8       -- the generation of the latch that is meant was deleted
local UNSURE = -9       -- the release was begun while the slot migrated, and how it ended is not known
