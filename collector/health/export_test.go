package health

// What reads text that others wrote, for fuzzing.
var (
	JudgeWindow    = judgeWindow
	NameOf         = nameOf
	WithoutSecrets = withoutSecrets
)
