package removedapi

// The parsers of external text, for fuzzing.
var (
	RemovedMinor   = removedMinor
	ServiceAccount = serviceAccount
	CronPeriod     = cronPeriod
)
