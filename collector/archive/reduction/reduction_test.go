package reduction_test

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/archive/reduction"
)

func TestWithoutUsers(t *testing.T) {
	for text, tc := range map[string]struct{ want, reason string }{
		"http://user:pass@proxy.test:3128":         {"http://proxy.test:3128", "a password"},
		"a https://user@x.test/a@b, c":             {"a https://x.test/a@b, c", "a user alone, in a text"},
		"http://user:p@ss@proxy.test":              {"http://proxy.test", "a password with an at sign"},
		"http://user:p/a#s?s@proxy.test":           {"http://proxy.test", "a password that is not escaped"},
		`{"a":"http:\/\/user:pass@proxy.test"}`:    {`{"a":"http:\/\/proxy.test"}`, "JSON within a text"},
		"https://x.test:8443/a@sha256:00":          {"https://x.test:8443/a@sha256:00", "a port and a path are no password"},
		"https://x.test/a@sha256:00":               {"https://x.test/a@sha256:00", "an image"},
		"quay.io/a/b@sha256:00 ops@x.test: a":      {"quay.io/a/b@sha256:00 ops@x.test: a", "no URL"},
		"http://a:b@x.test http://c:d@y.test":      {"http://x.test http://y.test", "two URLs"},
		"system:serviceaccount:ns:name https://x/": {"system:serviceaccount:ns:name https://x/", "no user info"},
	} {
		if got := reduction.WithoutUsers(text); got != tc.want {
			t.Errorf("%q became %q, want %q: %s", text, got, tc.want, tc.reason)
		}
	}
}

// FuzzWithoutUsers holds that no URL keeps user info, and that another one stays.
func FuzzWithoutUsers(f *testing.F) {
	for _, seed := range []string{"http://a:b@x", "https://x/y@z", "a://@", "http://a:@b:c@d", "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := reduction.WithoutUsers(text)
		before, err := url.Parse(text)
		if err != nil || before.Scheme == "" || before.Host == "" {
			return
		}
		after, err := url.Parse(got)
		if err != nil || after.User != nil && after.User.String() != "" {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	})
}

func TestReduce(t *testing.T) {
	deployments := inventory.Resource{Group: "apps", Name: "deployments"}
	object := func(namespace, name string, container map[string]any) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"namespace": namespace, "name": name},
			"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{container}}}},
		}
	}
	environment := func(names ...string) map[string]any {
		var variables []any
		for _, name := range names {
			variables = append(variables, map[string]any{"name": name, "value": "v"})
		}
		return map[string]any{"name": "c", "env": variables}
	}
	for name, tc := range map[string]struct {
		reason       string
		resource     inventory.Resource
		object, want map[string]any
	}{
		"Settings": {
			"the settings of the cluster-version operator decide which manifests apply", deployments,
			object("openshift-cluster-version", "cluster-version-operator", environment("CLUSTER_PROFILE", "HTTP_PROXY")),
			object("openshift-cluster-version", "cluster-version-operator", environment("CLUSTER_PROFILE")),
		},
		"Environment": {
			"no other environment is read", deployments, object("a", "b", environment("CLUSTER_PROFILE")),
			object("a", "b", map[string]any{"name": "c"}),
		},
		"Template": {
			"a template of pods is reduced also where all is read",
			inventory.Resource{Group: "upgrade.managed.openshift.io", Name: "upgradeconfigs"},
			object("a", "b", environment("TOKEN")), object("a", "b", map[string]any{"name": "c"}),
		},
		"Missing": {
			"a list without items is not one that does not exist",
			inventory.Resource{Group: "operator.openshift.io", Name: "machineconfigurations"},
			map[string]any{"spec": map[string]any{"machineManagers": []any{}, "a": nil}},
			map[string]any{"spec": map[string]any{"machineManagers": []any{}, "a": nil}},
		},
		"Storage": {
			"the types of storage of the image registry decide, and nothing that they have",
			inventory.Resource{Group: "imageregistry.operator.openshift.io", Name: "configs"},
			map[string]any{"spec": map[string]any{
				"managementState": "Managed", "httpSecret": "s",
				"storage": map[string]any{"s3": map[string]any{"bucket": "b"}, "emptyDir": map[string]any{}, "managementState": "Managed"},
			}},
			map[string]any{"spec": map[string]any{
				"managementState": "Managed",
				"storage":         map[string]any{"s3": map[string]any{}, "emptyDir": map[string]any{}},
			}},
		},
		"Form": {"a value of another form than the one that is read", deployments, map[string]any{"spec": "text"}, map[string]any{}},
		"Named": {
			"a ConfigMap that is read by its name",
			inventory.Resource{Name: "configmaps"},
			map[string]any{"metadata": map[string]any{"namespace": "a", "name": "b"}, "data": map[string]any{"k": "v"}},
			map[string]any{"metadata": map[string]any{"namespace": "a", "name": "b"}, "data": map[string]any{"k": "v"}},
		},
		"Annotations": {
			"some annotations decide, and all others may have anything",
			inventory.Resource{Name: "namespaces"},
			map[string]any{"metadata": map[string]any{"annotations": map[string]any{
				"include.release.openshift.io/x": "true", "notes": "n",
				"kubectl.kubernetes.io/last-applied-configuration": "{}",
			}}},
			map[string]any{"metadata": map[string]any{"annotations": map[string]any{"include.release.openshift.io/x": "true"}}},
		},
		"LoadBalancer": {
			"clusters are compared by who provides the load balancers, and not by their addresses",
			inventory.Resource{Group: "config.openshift.io", Name: "infrastructures"},
			map[string]any{"status": map[string]any{"platformStatus": map[string]any{
				"type":      "BareMetal",
				"baremetal": map[string]any{"apiServerInternalIPs": []any{"10.0.0.9"}, "loadBalancer": map[string]any{"type": "UserManaged"}},
			}}},
			map[string]any{"status": map[string]any{"platformStatus": map[string]any{
				"type":      "BareMetal",
				"baremetal": map[string]any{"loadBalancer": map[string]any{"type": "UserManaged"}},
			}}},
		},
		"MachineConfig": {
			"files and kernel arguments have secrets: what is kept is the default runtime, paths of network scripts, arguments about " +
				"cgroups, and that of a network team without its value",
			inventory.Resource{Group: "machineconfiguration.openshift.io", Name: "machineconfigs"},
			map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{
				"kernelType": "realtime", "fips": true, "kernelArguments": []any{"rd.iscsi.password=secret team=secret:em1 " +
					"systemd.unified_cgroup_hierarchy=0"},
				"config": map[string]any{
					"passwd": map[string]any{"users": []any{map[string]any{"passwordHash": "secret"}}},
					"storage": map[string]any{"files": []any{
						map[string]any{"path": "/etc/secret", "contents": map[string]any{"source": "data:,secret"}},
						map[string]any{"path": "/etc/sysconfig/network-scripts/ifcfg-eth0", "contents": map[string]any{"source": "data:,secret"}},
						map[string]any{
							"path":     "/etc/crio/crio.conf.d/01-secret",
							"contents": map[string]any{"source": "data:,%5Bcrio.runtime%5D%0Asecret=1%0Adefault_runtime=%22runc%22"},
						},
					}},
				},
			}},
			map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{
				"kernelType": "realtime", "kernelArguments": []any{"systemd.unified_cgroup_hierarchy=0", "team"},
				"config": map[string]any{"storage": map[string]any{"files": []any{
					map[string]any{
						"path":     "/etc/crio/crio.conf.d/default-runtime",
						"contents": map[string]any{"source": "data:,%5Bcrio.runtime%5D%0Adefault_runtime%20=%20%22runc%22%0A"},
					},
					map[string]any{"path": "/etc/sysconfig/network-scripts/ifcfg-eth0"},
				}}},
			}},
		},
		"Listed": {
			"a ConfigMap that is in a list, and that no check reads",
			inventory.Resource{Name: "configmaps"},
			map[string]any{"metadata": map[string]any{"namespace": "a", "name": "c"}, "data": map[string]any{"k": "v"}},
			map[string]any{"metadata": map[string]any{"namespace": "a", "name": "c"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			reads := []access.Request{{Verb: "get", Resource: "configmaps", Namespace: "a", Name: "b"}}
			got, err := reduction.New(reads).Reduce(tc.object, tc.resource)
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v; -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
	if _, err := reduction.New(nil).Reduce(map[string]any{}, inventory.Resource{Group: "a.test", Name: "widgets"}); err == nil {
		t.Error("the fields of an unknown resource are known")
	}
}
