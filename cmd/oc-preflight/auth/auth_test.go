package auth_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/auth"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/cmd/oc-preflight/role"
	"github.com/openshift/update-preflight/collector/access"
)

// call runs "auth" in a program with the commands judge, read, and fleet judge.
func call(args ...string) (out, problem string) {
	var printed strings.Builder
	root := &cobra.Command{
		Use: "preflight", SilenceErrors: true, SilenceUsage: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "oc preflight"},
	}
	client := cli.New(root.PersistentFlags(), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &printed, ErrOut: &printed})
	needs := func(resource string) access.Needs {
		return access.Needs{Required: []access.Request{{Verb: "list", Resource: resource}}}
	}
	judge, read, fleet, many := &cobra.Command{Use: "judge"}, &cobra.Command{Use: "read"}, &cobra.Command{Use: "fleet"},
		&cobra.Command{Use: "judge"}
	fleet.AddCommand(many)
	client.Roles.Declare(judge, role.Role{
		Flags: []string{"to", "hosted-cluster"},
		Needs: role.Always(func() access.Needs { return needs("nodes") }),
		Management: func(of types.NamespacedName) role.Part {
			return role.Part{Needs: needs("pods"), Remarks: []string{"Of " + of.Name + "."}}
		},
		Remarks: func(r role.Request) []string { return []string{"With " + string(r.Images) + "."} },
	})
	client.Roles.Declare(read, role.Role{Needs: role.Always(func() access.Needs { return needs("events") })})
	client.Roles.Declare(many, role.Role{
		Flags:   []string{"hive"},
		Members: []role.Members{{Flag: "hive", Part: role.Part{Needs: needs("clusterdeployments")}}},
	})
	root.AddCommand(auth.New(client), judge, read, fleet)
	root.SetArgs(append([]string{"auth"}, args...))
	err := root.Execute()
	var errors strings.Builder
	if code := exitcode.Code(err, phrase.Of(root).Remedy, &errors); code != 0 && code != exitcode.Usage {
		return printed.String(), "no wrong usage: " + errors.String()
	}
	return printed.String(), errors.String()
}

// A role that does not depend on a flag is not printed for it: it would be taken for one that the flag limits.
func TestRoles(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   []string // of the output, in this order
		error  string
	}{
		"All": {
			reason: "commands with needs of their own, in the order of the declaration",
			want:   []string{`"oc preflight judge" needs`, "# With check.", "- nodes", `"oc preflight read" needs`, "- events"},
		},
		"Images": {
			reason: "needs and remarks are for the request", args: []string{"judge", "--images", "pull"},
			want: []string{"# With pull.", "name: oc-preflight-judge"},
		},
		"Hosted": {
			reason: "the management cluster first, with roles of another name", args: []string{"judge", "--hosted-cluster", "a/b"},
			want: []string{
				"In the management cluster of HostedCluster a/b", "# Of b.", "name: oc-preflight-judge-a-b",
				"In the guest of HostedCluster a/b", "name: oc-preflight-judge\n",
			},
		},
		"Hive": {
			reason: "the cluster with the ClusterDeployments", args: []string{"judge", "--hive"},
			want: []string{`"oc preflight fleet judge" needs`, "name: oc-preflight-fleet-judge-hive", "- clusterdeployments"},
		},
		"Bound": {
			reason: "to a user", args: []string{"read", "--bind", "user:alice"},
			want: []string{"kind: ClusterRoleBinding", "name: alice"},
		},
		"Unknown": {
			reason: "the error has the commands", args: []string{"other"},
			error: `"other" is not a command that needs permissions; the commands are judge, read`,
		},
		"OfFleet": {
			reason: "a command for many clusters has no needs of its own", args: []string{"fleet-judge"},
			error: `"fleet-judge" is not a command that needs permissions`,
		},
		"OtherTo": {
			reason: "the role does not depend on the release", args: []string{"read", "--to", "4.19.1"},
			error: "--to applies to the roles of judge, and not of read",
		},
		"AllHive": {
			reason: "most roles are not for Hive", args: []string{"--hive"},
			error: "--hive applies to the roles of judge, and not of read; name the commands",
		},
		"Release": {
			reason: "the release would be read with the connection of the management cluster",
			args:   []string{"judge", "--to", "4.19.1", "--hosted-cluster", "a/b"}, error: "not known for a hosted cluster",
		},
		"Hosts": {
			reason: "a name without a namespace", args: []string{"judge", "--hosted-cluster", "b"},
			error: "--hosted-cluster=b: it must be NAMESPACE/NAME",
		},
		"NotImage": {reason: "no mode of --images", args: []string{"judge", "--images", "all"}, error: `--images: "all" is not one of`},
		"NoUser":   {reason: "a subject without a kind", args: []string{"read", "--bind", "alice"}, error: `--bind: "alice" is not user:NAME`},
	} {
		t.Run(name, func(t *testing.T) {
			out, problem := call(tc.args...)
			if !strings.Contains(problem, tc.error) || (tc.error == "") != (problem == "") {
				t.Errorf("%s: error %q, want %q", tc.reason, problem, tc.error)
			}
			rest := out
			for _, part := range tc.want {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Fatalf("%s: %q is missing, or in another order, in\n%s", tc.reason, part, out)
				}
				rest = after
			}
			if tc.error != "" && out != "" {
				t.Errorf("%s: wrong usage printed roles:\n%s", tc.reason, out)
			}
		})
	}
}
