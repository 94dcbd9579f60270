package health

// The functions on external text, for fuzzing.
var (
	JudgeWindow    = judgeWindow
	WithoutSecrets = withoutSecrets
)
