package dependency

// WithoutSecrets is for fuzzing: it reads external text.
var WithoutSecrets = withoutSecrets
