package called_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/cmd/oc-preflight/called"
)

func TestText(t *testing.T) {
	const plugin, bare = "kubectl preflight", "bin/oc-preflight"
	for name, tc := range map[string]struct{ reason, text, program, want string }{
		"Same": {
			reason: "a plugin of oc calls oc", text: "oc preflight run; oc get nodes", program: called.Plugin,
			want: "oc preflight run; oc get nodes",
		},
		"Ours": {
			reason: "this program has the name by which it was called", text: "oc preflight run --to 4.19.3", program: plugin,
			want: "kubectl preflight run --to 4.19.3",
		},
		"OursAlone": {reason: "the name without a verb", text: "see \"oc preflight\"", program: bare, want: "see \"bin/oc-preflight\""},
		"Bare": {
			reason: "a binary that is no plugin says nothing of kubectl", text: "oc preflight ack x | oc apply -f -", program: bare,
			want: "bin/oc-preflight ack x | oc apply -f -",
		},
		"Get": {
			reason: "kubectl has the verb", text: "oc get clusteroperator storage -o yaml", program: plugin,
			want: "kubectl get clusteroperator storage -o yaml",
		},
		"Namespace": {
			reason: "flags before the verb",
			text:   "oc -n openshift-config patch configmap admin-acks -p '{\"data\":{\"a b\":\"true\"}}'", program: plugin,
			want: "kubectl -n openshift-config patch configmap admin-acks -p '{\"data\":{\"a b\":\"true\"}}'",
		},
		"Upgrade": {
			reason: "kubectl has no equal", text: "oc adm upgrade --to 4.19.3", program: plugin,
			want: "oc adm upgrade --to 4.19.3",
		},
		"Uncordon": {
			reason: "a verb of oc adm is one of kubectl", text: "oc adm uncordon node-1", program: plugin,
			want: "kubectl uncordon node-1",
		},
		"Certificate": {
			reason: "a verb with a verb", text: "oc adm certificate approve a b", program: plugin,
			want: "kubectl certificate approve a b",
		},
		"Login": {
			reason: "only oc has it", text: "log in again with \"oc login\": no", program: plugin,
			want: "log in again with \"oc login\": no",
		},
		"Extract": {
			reason: "only oc has it", text: "(umask 077; oc -n x extract secret/y --to=- > z)", program: plugin,
			want: "(umask 077; oc -n x extract secret/y --to=- > z)",
		},
		"Debug": {reason: "kubectl has other arguments", text: "oc debug node/x", program: plugin, want: "oc debug node/x"},
		"SetData": {
			reason: "a subcommand that only oc has", text: "oc set data secret/x --from-file=y", program: plugin,
			want: "oc set data secret/x --from-file=y",
		},
		"Pipe": {
			reason: "each command of a pipe", text: "oc get x -A -o json | oc replace -f -", program: plugin,
			want: "kubectl get x -A -o json | kubectl replace -f -",
		},
		"Substitution": {
			reason: "the command of a substitution", text: "oc delete pod $(oc get pods -o name)", program: plugin,
			want: "kubectl delete pod $(kubectl get pods -o name)",
		},
		"Prose": {
			reason: "commands in a sentence", text: "Acknowledge it: `oc preflight ack GATE`, then `oc wait co x`.",
			program: plugin, want: "Acknowledge it: `kubectl preflight ack GATE`, then `kubectl wait co x`.",
		},
		"OtherPrograms": {
			reason: "the end of another word is no program", text: "alloc get; /bin/oc get; oc-mirror get; a.oc get",
			program: plugin, want: "alloc get; /bin/oc get; oc-mirror get; a.oc get",
		},
		"OtherPlugin": {reason: "another plugin of oc", text: "oc preflights run", program: plugin, want: "oc preflights run"},
		"End":         {reason: "no verb follows", text: "use oc ", program: plugin, want: "use oc "},
		"OnlyFlags":   {reason: "no verb follows the flags", text: "oc --context x", program: plugin, want: "oc --context x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := called.Text(tc.text, tc.program); got != tc.want {
				t.Errorf("%s:\n%s\nwant\n%s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestWords(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, program string
		call, want      []string
	}{
		"Connection": {
			reason: "the value of a flag may be the name of a verb", program: "kubectl preflight",
			call: []string{"oc", "--context", "get all", "--kubeconfig=/k", "--insecure-skip-tls-verify", "adm", "drain", "node-1"},
			want: []string{"kubectl", "--context", "get all", "--kubeconfig=/k", "--insecure-skip-tls-verify", "drain", "node-1"},
		},
		"Upgrade": {
			reason: "kubectl has no equal", program: "kubectl preflight", call: []string{"oc", "--context", "x", "adm", "upgrade"},
			want: []string{"oc", "--context", "x", "adm", "upgrade"},
		},
		"Xargs": {
			reason: "the program that another one calls", program: "kubectl preflight", call: []string{"xargs", "-n", "1", "oc", "get"},
			want: []string{"xargs", "-n", "1", "kubectl", "get"},
		},
		"Spaces": {
			reason: "the name is shown as one word of a shell, and quoted once", program: `'/a b/it'\''s'`,
			call: []string{"oc", "preflight", "run"}, want: []string{"/a b/it's", "run"},
		},
		"Operand": {
			reason: "an operand is no program", program: "kubectl preflight", call: []string{"grep", "oc", "get"},
			want: []string{"grep", "oc", "get"},
		},
		"OursPath": {
			reason: "the path of the program is one word", program: "/my tools/oc-preflight", call: []string{"oc", "preflight", "run"},
			want: []string{"/my tools/oc-preflight", "run"},
		},
		"OnlyFlags": {
			reason: "no verb follows", program: "kubectl preflight", call: []string{"oc", "--context"},
			want: []string{"oc", "--context"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := called.Words(tc.call, tc.program); !slices.Equal(got, tc.want) {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// Only names of programs, and "adm", are replaced in any text.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"oc get x", "oc adm drain y", "oc --context 'a", "oc -", "oc preflight", "oc" + " oc get",
		"`oc get`oc adm upgrade", "oc -n",
	} {
		f.Add(seed)
	}
	without := strings.NewReplacer("kubectl", "", "oc", "", "adm", "", " ", "")
	f.Fuzz(func(t *testing.T, text string) {
		got := called.Text(text, "kubectl preflight")
		if without.Replace(got) != without.Replace(text) {
			t.Errorf("%q became %q", text, got)
		}
		if again := called.Text(text, called.Plugin); again != text {
			t.Errorf("%q became %q", text, again)
		}
	})
}
