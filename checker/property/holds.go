package property

// HoldEnd is the reason why a hold ended, as a phrase for people.
type HoldEnd string

// The ends of a hold.
const (
	StillHeld      HoldEnd = "still held at the end"
	Released       HoldEnd = "released"
	ReleaseUnknown HoldEnd = "release of unknown outcome"
	ReleaseRefused HoldEnd = "release refused"
	RenewalRefused HoldEnd = "renewal refused"
	AcquiredAgain  HoldEnd = "acquired again, perhaps after its lease"
	LossReported   HoldEnd = "loss reported"
	Crashed        HoldEnd = "client crashed"
)

// LeaseStart says from when on the lease of a hold counts whose grant stated no validity.
type LeaseStart string

// The starts of a lease.
const (
	LeaseNotCounted  LeaseStart = ""                               // the grant stated a validity, or there is no lease
	LeaseFromRequest LeaseStart = "counted from the request"       // at the earliest: the servers may have begun it later
	LeaseFromServer  LeaseStart = "counted from a server's sample" // the first that shows it
	LeaseFromGrant   LeaseStart = "counted from the grant"         // counted from the request, it had ended before
)
