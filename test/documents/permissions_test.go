package documents_test

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
)

const permissions = "cmd/oc-preflight/PERMISSIONS.md"

// purposes returns the purpose of each resource.
func purposes() map[string]string {
	const (
		checksOfRelease = "the checks of the release and their temporary identities"
		records         = "the records of runs"
		release         = "to verify and read the release as the nodes do"
		builtIn         = "the built-in checks"
		admission       = "which webhooks and policies receive the requests of the update; the read-only guard"
		monitoring      = "to reach the monitoring of the cluster"
		removed         = "who uses removed APIs"
		webhooks        = "whether webhooks respond"
		reviews         = "the access of the accounts of checks"
		drains          = "what the drains of an update evict, and where it runs then"
		hostedSide      = "the hosted cluster as its management cluster has it"
		quotas          = "whether the pods of checks are accepted"
		placed          = "the clusters of a hub, and which of them a Placement selects"
	)
	return map[string]string{
		"configmaps": "trust, signatures, admin gates; records; those of checks", "events": "why a pod does not start",
		"namespaces": "which namespaces exist", "nodes": builtIn, "pods": "the pods of checks; whether nodes can be drained", "pods/log": checksOfRelease,
		"nodes/proxy": "the disk space of nodes", "secrets": "the pull secret; the key of the records", "serviceaccounts": checksOfRelease, "services": webhooks,
		"persistentvolumeclaims":        checksOfRelease,
		"mutatingwebhookconfigurations": admission, "validatingwebhookconfigurations": admission,
		"validatingadmissionpolicies": admission, "validatingadmissionpolicybindings": admission,
		"customresourcedefinitions": "whether the definitions of the release are accepted, and objects converted", "apiservices": "whether every API is served; the access of the accounts of checks", "apirequestcounts": removed,
		"daemonsets": removed, "deployments": removed + "; the settings of CVO", "statefulsets": removed,
		"cronjobs": removed, "jobs": checksOfRelease,
		"subjectaccessreviews": reviews, "selfsubjectaccessreviews": reviews,
		"clusteroperators": builtIn, "clusterversions": "the present release, its updates and risks", "networks": builtIn, "infrastructures": builtIn,
		"featuregates": "which checks apply", "clusterimagepolicies": release, "imagedigestmirrorsets": release, "imagetagmirrorsets": release,
		"imagecontentsourcepolicies": release, "images": release, "proxies": release,
		"resourcequotas": quotas, "limitranges": quotas, "mutatingadmissionpolicies": quotas,
		"replicasets": drains, "replicationcontrollers": drains, "priorityclasses": drains, "persistentvolumes": drains, "storageclasses": drains, "csinodes": drains,
		"virtualmachineinstances": drains, "kubevirts": drains, "clusters": drains,
		"hostedclusters": hostedSide, "nodepools": hostedSide, "hcpetcdbackups": hostedSide,
		"leases": records, "endpointslices": webhooks,
		"flowschemas": removed, "prioritylevelconfigurations": removed, "machinesets": builtIn, "machinehealthchecks": builtIn, "certificatesigningrequests": builtIn, "machineconfigpools": builtIn, "machineconfigurations": builtIn, "machineconfignodes": builtIn, "machineconfigs": builtIn, "osimagestreams": builtIn,
		"authentications": builtIn, "configs": builtIn, "etcds": builtIn, "kubeapiservers": builtIn, "kubestorageversionmigrators": builtIn, "openshiftapiservers": builtIn,
		"storageversionmigrations": builtIn,
		"clusterserviceversions":   builtIn, "subscriptions": builtIn, "catalogsources": builtIn, "poddisruptionbudgets": builtIn, "upgradeconfigs": builtIn,
		"clusterroles": checksOfRelease, "clusterrolebindings": checksOfRelease, "roles": checksOfRelease, "rolebindings": checksOfRelease,
		"managedclusters": placed, "placements": placed, "placementdecisions": placed, "managedclusterviews": "what the clusters of a hub report",
		"manifestworks": "what the clusters of a hub report", "manifestworkreplicasets": "by what a hub asks its clusters",
		"prometheusrules": "the switches of the controller", "routes": monitoring,
	}
}

// printedRoles is what "oc preflight auth" prints for a command.
func printedRoles(t *testing.T, name string, flags ...string) string {
	t.Helper()
	var printed, failed bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &printed, ErrOut: &failed}
	if code := command.Execute(t.Context(), append([]string{"oc-preflight", "auth", name}, flags...), streams); code != 0 {
		t.Fatalf("auth %s: exit code %d: %s", name, code, failed.String())
	}
	return printed.String()
}

// place is the namespace and the objects of a permission.
type place struct{ namespace, group, resource, name string }

// optionals are the verbs of the optional permissions, which are named in the comment above
// the roles.
func optionals(roles string) map[place][]string {
	text := strings.Join(strings.Fields(strings.ReplaceAll(strings.Split(roles, "apiVersion:")[0], "\n#", " ")), " ") + " "
	_, text, _ = strings.Cut(text, "reported where it matters: ")
	text, _, _ = strings.Cut(text, ". ")
	found := map[place][]string{}
	entry := regexp.MustCompile(`^(\w+(?:, \w+)*) ([\w/]+)\.?([\w.]*)(?: ([\w-]+))??(?: in namespace ([\w-]+))?$`)
	for clause := range strings.SplitSeq(text, "; ") {
		if match := entry.FindStringSubmatch(clause); match != nil {
			found[place{match[5], match[3], match[2], match[4]}] = strings.Split(match[1], ", ")
		}
	}
	return found
}

// granted is one row: resources that are granted in the same way.
type granted struct {
	scope, group, names, verbs, purpose string
	resources                           []string
}

// alike reports whether another row differs in its resources only.
func (g granted) alike(other granted) bool {
	return other.scope == g.scope && other.group == g.group && other.names == g.names && other.verbs == g.verbs && other.purpose == g.purpose
}

// ofManagement are the roles of a command in the management cluster of a hosted cluster: those before the
// comment of the guest's.
func ofManagement(t *testing.T, name string) string {
	t.Helper()
	printed, _, found := strings.Cut(printedRoles(t, name, "--hosted-cluster", "NAMESPACE/NAME"), "# In the guest of")
	if !found {
		t.Fatalf("auth %s: the roles of the guest do not follow those of the management cluster", name)
	}
	return printed
}

// purposesOfManagement are those of resources in the management cluster of a hosted cluster, where they differ.
func purposesOfManagement() map[string]string {
	const controlPlane = "whether the control plane runs, and has room to be updated"
	return map[string]string{
		"secrets": "the kubeconfig of the guest; the pull secrets of the release", "configmaps": "trust and signatures; the versions that HyperShift supports",
		"namespaces": controlPlane, "nodes": controlPlane, "pods": controlPlane, "deployments": controlPlane, "statefulsets": controlPlane, "poddisruptionbudgets": controlPlane,
		"validatingadmissionpolicybindings": "the switches of the controller",
	}
}

// printedRole are the roles that "auth" prints.
type printedRole struct {
	roles string
	// optional are the verbs of the optional permissions.
	optional map[place][]string
	// purposes are those of the resources.
	purposes map[string]string
}

func rolesOf(roles string, purposes map[string]string) printedRole {
	return printedRole{roles: roles, optional: optionals(roles), purposes: purposes}
}

// rows are the permissions as those of a table.
func (p printedRole) rows(t *testing.T) [][]string {
	t.Helper()
	var all []granted
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(p.roles), len(p.roles))
	for {
		var role rbacv1.Role
		if err := decoder.Decode(&role); err == io.EOF { //nolint:errorlint // the decoder returns it as it is
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			all = p.add(t, all, role.Namespace, rule)
		}
	}
	cells := [][]string{{"API group", "resources", "verbs", "scope", "what for"}}
	for _, row := range all {
		resources := "`" + strings.Join(row.resources, "`, `") + "`"
		if row.names != "" {
			resources += " named " + row.names
		}
		cells = append(cells, []string{cmp.Or(row.group, "core"), resources, row.verbs, row.scope, row.purpose})
	}
	return cells
}

// add adds a rule to the rows, each resource to the row of those that are granted in the same way.
func (p printedRole) add(t *testing.T, all []granted, namespace string, rule rbacv1.PolicyRule) []granted {
	t.Helper()
	scope := "cluster"
	if namespace != "" {
		scope = "`" + namespace + "`"
	}
	for _, resource := range rule.Resources {
		purpose, known := p.purposes[resource]
		if !known {
			t.Errorf("the purpose of %s is missing in the test", resource)
		}
		row := granted{scope: scope, group: strings.Join(rule.APIGroups, ", "), names: strings.Join(rule.ResourceNames, ", "), purpose: purpose}
		row.verbs = verbs(rule, p.optional[place{namespace, row.group, resource, row.names}])
		at := slices.IndexFunc(all, row.alike)
		if at < 0 {
			row.resources = []string{resource}
			all = append(all, row)
			continue
		}
		all[at].resources = append(all[at].resources, resource)
	}
	return all
}

// verbs are those of a rule, with the optional ones marked.
func verbs(rule rbacv1.PolicyRule, optional []string) string {
	var marked []string
	for _, verb := range rule.Verbs {
		if slices.Contains(optional, verb) {
			verb = "*" + verb + "*"
		}
		marked = append(marked, verb)
	}
	return strings.Join(marked, ", ")
}

// hostedCommands are the commands with --hosted-cluster. In the guest they need what they need in any other
// cluster.
var hostedCommands = []string{"run", "targets", "plan", "drain-plan", "status"}

// TestPermissions writes the permissions of each command, which "auth" prints.
func TestPermissions(t *testing.T) {
	auth, _, err := program().Find([]string{"auth"})
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	for _, name := range auth.ValidArgs {
		page.WriteString("\n## " + name + "\n\n" + table(rolesOf(printedRoles(t, name), purposes()).rows(t)...))
	}
	management := purposes()
	maps.Copy(management, purposesOfManagement())
	for _, name := range hostedCommands {
		page.WriteString("\n## " + name + " --hosted-cluster NAMESPACE/NAME, in the management cluster\n\n" + table(rolesOf(ofManagement(t, name), management).rows(t)...))
	}
	expectGenerated(t, permissions, "permissions", page.String())
}

// TestOptionalsAreRead fails where the comment about optional permissions is not parsed.
func TestOptionalsAreRead(t *testing.T) {
	const least = 30
	if got := optionals(printedRoles(t, "run")); len(got) < least {
		t.Errorf("%d optional permissions of run were read, want at least %d: %v", len(got), least, got)
	}
}
