package documents_test

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/test/documents"
)

const permissions = "cmd/oc-preflight/PERMISSIONS.md"

// printedRoles is what "oc preflight auth" prints for a command.
func printedRoles(t *testing.T, name string) string {
	t.Helper()
	var printed, failed bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &printed, ErrOut: &failed}
	if code := command.Execute(t.Context(), []string{"/usr/local/bin/oc-preflight", "auth", name}, streams); code != 0 {
		t.Fatalf("auth %s: exit code %d: %s", name, code, failed.String())
	}
	return printed.String()
}

// authCommand returns the command that prints roles.
func authCommand(t *testing.T) *cobra.Command {
	t.Helper()
	auth, _, err := program().Find([]string{"auth"})
	if err != nil {
		t.Fatal(err)
	}
	return auth
}

// reads are the verbs that change nothing.
var reads = []string{"get", "list", "watch"}

// rules are those of all roles, by namespace ("" for the cluster).
func rules(t *testing.T, roles string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	all := map[string][]rbacv1.PolicyRule{}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(roles), len(roles))
	for {
		var role rbacv1.Role
		if err := decoder.Decode(&role); err == io.EOF { //nolint:errorlint // the decoder returns it as it is
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[role.Namespace] = append(all[role.Namespace], role.Rules...)
	}
}

// written are the resources that roles permit to change, by namespace ("" for the cluster).
func written(t *testing.T, roles string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for namespace, each := range rules(t, roles) {
		for _, rule := range each {
			all[namespace] = append(all[namespace], writtenBy(rule)...)
		}
	}
	return all
}

// writtenBy are the resources that a rule permits to change. A review changes nothing, though it is
// created.
func writtenBy(rule rbacv1.PolicyRule) []string {
	if !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains(reads, verb) }) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(rule.Resources), func(resource string) bool { return strings.HasSuffix(resource, "accessreviews") })
}

// describeWritten are the resources of all namespaces as one cell.
func describeWritten(byNamespace map[string][]string) string {
	var places []string
	for namespace, resources := range byNamespace {
		if len(resources) == 0 {
			continue
		}
		slices.Sort(resources)
		resources = slices.Compact(resources)
		place := "`" + strings.Join(resources, "`, `") + "`"
		if namespace != "" {
			place += " in " + namespace
		}
		places = append(places, place)
	}
	slices.Sort(places)
	return strings.Join(places, "; ")
}

// TestPermissions writes what the roles of each command, which "auth" prints, permit to change.
func TestPermissions(t *testing.T) {
	rows, readers := [][]string{{"command", "what its roles permit to change"}}, []string{}
	for _, name := range authCommand(t).ValidArgs {
		if cell := describeWritten(written(t, printedRoles(t, name))); cell != "" {
			rows = append(rows, []string{"`" + name + "`", cell})
			continue
		}
		readers = append(readers, "`"+name+"`")
	}
	rows = append(rows, []string{strings.Join(readers, ", "), "nothing"})
	expectGenerated(t, permissions, "permissions", table(rows...))
}

// TestSecretsByName fails for a role with which Secrets without a name can be read, since the page states that
// none can.
func TestSecretsByName(t *testing.T) {
	if !strings.Contains(read(t, permissions), "Secrets are read by name only.") {
		t.Fatalf("%s does not state how Secrets are read", permissions)
	}
	for _, name := range authCommand(t).ValidArgs {
		for namespace, each := range rules(t, printedRoles(t, name)) {
			for _, rule := range each {
				if slices.Contains(rule.Resources, "secrets") && len(rule.ResourceNames) == 0 && !slices.Equal(rule.Verbs, []string{"create"}) {
					t.Errorf("auth %s, namespace %q: %v of Secrets of any name", name, namespace, rule.Verbs)
				}
			}
		}
	}
}

// rolesOf are the commands whose roles the calls of "auth" in a page request.
func rolesOf(t *testing.T, text string) []string {
	t.Helper()
	texts := documents.Spans(text)
	for _, block := range documents.Blocks(text) {
		texts = append(texts, block.Text)
	}
	var names []string
	for _, call := range documents.Calls(strings.Join(texts, "\n")) {
		if auth := authCommand(t); len(call) > 0 && call[0] == "auth" && auth.ParseFlags(call[1:]) == nil {
			names = append(names, auth.Flags().Args()...)
		}
	}
	// A word in capitals stands for a name.
	return slices.DeleteFunc(names, func(name string) bool { return name == strings.ToUpper(name) })
}

// TestRolesOfPages fails for a call of "auth" in a page with a command for which it has no roles.
func TestRolesOfPages(t *testing.T) {
	known, checked := authCommand(t).ValidArgs, 0
	for path, text := range markdown(t) {
		for _, name := range rolesOf(t, text) {
			checked++
			if !slices.Contains(known, name) {
				t.Errorf("%s: oc preflight auth has no roles for %q", path, name)
			}
		}
	}
	const least = 20
	if checked < least {
		t.Errorf("%d commands of auth were found, want at least %d", checked, least)
	}
}

// TestCommandsWithoutPermissions fails for a command that the page lists as one without a cluster, though
// "auth" has roles for it.
func TestCommandsWithoutPermissions(t *testing.T) {
	_, listed, found := strings.Cut(strings.Join(strings.Fields(read(t, permissions)), " "), "These need no cluster: ")
	listed, _, _ = strings.Cut(listed, ". ")
	names := regexp.MustCompile("`([a-z-]+)[^`]*`").FindAllStringSubmatch(listed, -1)
	if !found || len(names) == 0 {
		t.Fatalf("%s does not list the commands without a cluster", permissions)
	}
	for _, name := range names {
		call, _, err := program().Find([]string{name[1]})
		if err != nil || !call.HasParent() {
			t.Errorf("%s lists %q, which is no command: %v", permissions, name[1], err)
		}
		if !strings.Contains(name[0], " ") && slices.Contains(authCommand(t).ValidArgs, name[1]) {
			t.Errorf("%s lists %q as without a cluster, and auth has roles for it", permissions, name[1])
		}
	}
}
