package preflight

// Finding is the result of one check. A check that links this SDK fills it
// through [T].
type Finding struct {
	// Name identifies the finding. Administrators type it to accept the finding. It
	// matches ^[A-Z][A-Za-z0-9.-]*$, the rule for risk names in ClusterVersion.
	Name string `json:"name"`
	// Outcome is how the check ended.
	Outcome Outcome `json:"outcome"`
	// Reason is the kind of cause as one CamelCase word, stable across releases.
	Reason string `json:"reason"`
	// Message states the cause in one sentence and names the object.
	Message string `json:"message"`
	// Remediation is the action that resolves the finding, in sentences.
	Remediation string `json:"remediation,omitempty"`
	// Actions are the steps of the remediation that are commands, in order.
	Actions []Action `json:"actions,omitempty"`
	// URL is the documentation of the check.
	URL string `json:"url,omitempty"`
	// Objects are the affected objects, most important first.
	Objects []Object `json:"objects,omitempty"`
	// Evidence contains short facts that support the message, by name.
	Evidence map[string]string `json:"evidence,omitempty"`
}

// Action is one step of a remediation.
type Action struct {
	// Command is the whole command, to be copied into a shell.
	Command string `json:"command"`
}

// Object identifies one Kubernetes object.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}
