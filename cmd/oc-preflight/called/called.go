// Package called answers: by which programs are commands called?
//
// Commands name this program "oc preflight", and the program of the cluster "oc". [Words] has a call with the names by
// which the user calls them; [Text] has the same for the commands that a text of this program mentions.
package called

import (
	"regexp"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/words"
)

// Plugin is how the texts of all packages call this program.
const Plugin = "oc preflight"

// kubectl is the first word of the name of a plugin of kubectl.
const kubectl = "kubectl"

// OC is the place of "oc" in a call, also as the program that xargs calls; -1 in a call of another program.
func OC(call []string) int {
	at := slices.Index(call, "oc")
	if at > 0 && call[0] != "xargs" {
		return -1
	}
	return at
}

// Words are the words of a call for a user who calls this program by name, such as "kubectl preflight". The commands of
// oc that kubectl has, too, are its commands for a plugin of kubectl; the others stay.
func Words(call []string, name string) []string {
	at := OC(call)
	if name == Plugin || at < 0 {
		return call
	}
	before, rest := call[:at:at], call[at+1:]
	isPlugin := strings.HasPrefix(name, kubectl+" ")
	switch {
	case len(rest) > 0 && rest[0] == "preflight" && isPlugin:
		return slices.Concat(before, strings.Fields(name), rest[1:])
	case len(rest) > 0 && rest[0] == "preflight":
		return slices.Concat(before, []string{unquoted(name)}, rest[1:])
	case !isPlugin:
		return call
	}
	flags := flagsOf(rest)
	verb, administration := word(rest, flags), word(rest, flags+1)
	switch {
	case slices.Contains(verbs(), verb), verb == "set" && slices.Contains([]string{"env", "image", "resources"}, administration):
		return slices.Concat(before, []string{kubectl}, rest)
	case verb == "adm" && slices.Contains(administrative(), administration):
		return slices.Concat(before, []string{kubectl}, rest[:flags], rest[flags+1:])
	}
	return call
}

// unquoted is a name that is shown as one word of a shell.
func unquoted(name string) string {
	if quoted, ok := strings.CutPrefix(name, "'"); ok {
		return strings.ReplaceAll(strings.TrimSuffix(quoted, "'"), `'\''`, "'")
	}
	return name
}

func word(call []string, at int) string {
	if at < len(call) {
		return call[at]
	}
	return ""
}

// flagsOf counts the words of the flags before a verb. All flags except switches have a value.
func flagsOf(call []string) int {
	at := 0
	for at < len(call) && strings.HasPrefix(call[at], "-") {
		isSwitch := strings.Contains(call[at], "=") ||
			slices.Contains([]string{"-A", "--insecure-skip-tls-verify", "--disable-compression"}, call[at])
		at++
		if !isSwitch {
			at++
		}
	}
	return min(at, len(call))
}

// program is the word "oc" with a namespace and up to two words behind it, and not the end of another word.
var program = regexp.MustCompile(`(^|[^-0-9A-Za-z./_])oc ((?:-n [^ ]+ )?[0-9A-Za-z][-0-9A-Za-z]*)( [-a-z]+)?`)

// Text returns a text of this program with the commands of a user who calls it by name.
func Text(text, name string) string {
	if name == Plugin || !strings.Contains(text, "oc ") {
		return text
	}
	return program.ReplaceAllStringFunc(text, func(found string) string {
		parts := program.FindStringSubmatch(found)
		call := strings.Fields("oc " + parts[2] + parts[3])
		return parts[1] + words.ShellLine(Words(call, name)...)
	})
}

// verbs are the verbs of oc that kubectl has with the same arguments.
func verbs() []string {
	return []string{
		"annotate", "api-resources", "api-versions", "apply", "attach", "auth", "autoscale", "cluster-info", "config", "cp", "create", "delete",
		"describe", "diff", "edit", "events", "exec", "expose", "get", "label", "logs", "patch", "port-forward", "replace", "rollout", "run",
		"scale",
		"wait",
	}
}

// administrative are the verbs of "oc adm" that are verbs of kubectl.
func administrative() []string {
	return []string{"certificate", "cordon", "drain", "taint", "top", "uncordon"}
}
