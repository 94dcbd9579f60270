package support_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	openshift "github.com/openshift/api"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/cmd/oc-preflight/support"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/archive/gathering"
	"github.com/openshift/update-preflight/collector/archive/writing"
	"github.com/openshift/update-preflight/collector/cluster"
)

// password is in the user info of a URL beside each canary.
const password = "pa55/word"

// canary is a text that shows of which field it is, with a URL.
func canary(path string) string {
	return fmt.Sprintf("canary(%s) http://user:%s@%s/x", path, password, "proxy.corp.test")
}

var canaries = regexp.MustCompile(`canary\(([^()]*)\)`)

// maxDepth bounds the fields within each other that get a value: schemas have schemas.
const maxDepth = 14

// fill gives each text of a value a canary with its path.
func fill(value reflect.Value, path string, depth int) {
	if depth == 0 || fillSpecial(value, path) {
		return
	}
	switch value.Kind() { //nolint:exhaustive // others have no text
	case reflect.String:
		value.SetString(canary(path))
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), path, depth-1)
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			value.SetBytes([]byte("canary(" + path + ")")) // such as a certificate
			return
		}
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0), path, depth-1)
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
		key, of := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		fill(key, path, depth-1)
		fill(of, path, depth-1)
		value.SetMapIndex(key, of)
	case reflect.Struct:
		for i := range value.NumField() {
			field := value.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.IsExported() && name != "-" {
				fill(value.Field(i), strings.Trim(path+"."+name, "."), depth-1)
			}
		}
	}
}

// fillSpecial fills a value of a type that has texts of its own; false for any other.
func fillSpecial(value reflect.Value, path string) bool {
	text := fmt.Sprintf(`{"a":%q}`, canary(path))
	switch into := value.Addr().Interface().(type) {
	case *metav1.Time:
		*into = metav1.NewTime(time.Unix(1e9, 0))
	case *metav1.MicroTime:
		*into = metav1.NewMicroTime(time.Unix(1e9, 0))
	case *resource.Quantity:
		*into = resource.MustParse("1")
	case *intstr.IntOrString:
		*into = intstr.FromString(canary(path))
	case *runtime.RawExtension:
		into.Raw = []byte(text)
	case *metav1.FieldsV1:
		into.SetRawString(text)
	case *apiextensionsv1.JSON:
		into.Raw = []byte(text)
	default:
		return false
	}
	return true
}

// withCanaries is an object of a kind with a canary in each field. One without a type has the fields of a
// template of pods.
func withCanaries(t *testing.T, known *runtime.Scheme, kind schema.GroupVersionKind, namespace, name string) map[string]any {
	t.Helper()
	typed, err := known.New(kind)
	content := map[string]any{}
	if err == nil {
		fill(reflect.ValueOf(typed).Elem(), "", maxDepth)
		content = decoded(t, typed)
	} else {
		var template corev1.PodTemplateSpec
		var metadata metav1.ObjectMeta
		fill(reflect.ValueOf(&template).Elem(), "spec.template", maxDepth)
		fill(reflect.ValueOf(&metadata).Elem(), "metadata", maxDepth)
		content["metadata"] = decoded(t, metadata)
		content["spec"] = map[string]any{"text": canary("spec.text"), "userData": canary("spec.userData"), "template": decoded(t, template)}
		content["status"] = map[string]any{"text": canary("status.text")}
		content["data"], content["notes"] = map[string]any{"a": canary("data")}, canary("notes")
	}
	content["apiVersion"], content["kind"] = kind.GroupVersion().String(), kind.Kind
	metadata, _ := content["metadata"].(map[string]any)
	metadata["name"], metadata["namespace"] = name, namespace
	return content
}

func decoded(t *testing.T, value any) map[string]any {
	t.Helper()
	text, err := json.Marshal(value)
	var content map[string]any
	if err := errors.Join(err, json.Unmarshal(text, &content)); err != nil {
		t.Fatal(err)
	}
	return content
}

// server serves an object with canaries for each request.
type server struct {
	t     *testing.T
	known *runtime.Scheme
	kinds map[schema.GroupResource]schema.GroupVersionKind
}

func newServer(t *testing.T, reads []access.Request) server {
	t.Helper()
	s := server{t: t, known: runtime.NewScheme(), kinds: map[schema.GroupResource]schema.GroupVersionKind{}}
	if err := errors.Join(kubernetes.AddToScheme(s.known), openshift.Install(s.known), apiextensionsv1.AddToScheme(s.known)); err != nil {
		t.Fatal(err)
	}
	typed := map[schema.GroupResource]schema.GroupVersionKind{}
	for _, version := range s.known.PrioritizedVersionsAllGroups() {
		for kind := range s.known.KnownTypes(version) {
			plural, _ := meta.UnsafeGuessKindToResource(version.WithKind(kind))
			if _, found := typed[plural.GroupResource()]; !found {
				typed[plural.GroupResource()] = version.WithKind(kind)
			}
		}
	}
	for _, each := range reads {
		of := schema.GroupResource{Group: each.Group, Resource: each.Resource}
		if each.Resource == access.All {
			s.serveGroup(each.Group, typed)
			continue
		}
		if s.kinds[of] = typed[of]; s.kinds[of].Empty() {
			s.kinds[of] = schema.GroupVersionKind{Group: of.Group, Version: "v1", Kind: "Untyped"}
		}
	}
	return s
}

// serveGroup serves all kinds of a group that are known, and one that is not.
func (s server) serveGroup(group string, typed map[schema.GroupResource]schema.GroupVersionKind) {
	for of, kind := range typed {
		if of.Group != group {
			continue
		}
		if of, err := s.known.New(kind); err == nil {
			if _, isObject := of.(metav1.Object); !isObject {
				continue // a list, or options
			}
		}
		s.kinds[of] = kind
	}
	if of := (schema.GroupResource{Group: group, Resource: "reporters"}); s.kinds[of].Empty() {
		s.kinds[of] = schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Reporter"}
	}
}

func (s server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	var content any
	switch {
	case request.URL.Path == "/version":
		content = map[string]string{"gitVersion": "v1.31.8"}
	case request.URL.Path == "/api":
		content = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case request.URL.Path == "/apis":
		content = s.groups()
	case len(path) == 2 && path[0] == "api":
		content = s.resources("", path[1])
	case len(path) == 3 && path[0] == "apis":
		content = s.resources(path[1], path[2])
	case path[0] == "api":
		content = s.answer("", path[2:])
	default:
		content = s.answer(path[1], path[3:])
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(content) // the client sees that it is torn
}

func (s server) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, kind := range s.kinds {
		at := slices.IndexFunc(list.Groups, func(group metav1.APIGroup) bool { return group.Name == kind.Group })
		if kind.Group != "" && at < 0 {
			version := metav1.GroupVersionForDiscovery{GroupVersion: kind.GroupVersion().String(), Version: kind.Version}
			list.Groups = append(list.Groups, metav1.APIGroup{
				Name: kind.Group, Versions: []metav1.GroupVersionForDiscovery{version},
				PreferredVersion: version,
			})
		}
	}
	return list
}

func (s server) resources(group, version string) metav1.APIResourceList {
	of := schema.GroupVersion{Group: group, Version: version}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: of.String()}
	for resource, kind := range s.kinds {
		if resource.Group == group {
			list.APIResources = append(list.APIResources,
				metav1.APIResource{Name: resource.Resource, Kind: kind.Kind, Namespaced: true, Verbs: []string{"get", "list"}})
		}
	}
	return list
}

// answer is the object, or the list, of a path below a version.
func (s server) answer(group string, path []string) any {
	namespace := "shop"
	if path[0] == "namespaces" && len(path) > 2 {
		namespace, path = path[1], path[2:]
	}
	kind := s.kinds[schema.GroupResource{Group: group, Resource: path[0]}]
	if len(path) > 1 {
		return withCanaries(s.t, s.known, kind, namespace, path[1])
	}
	item := withCanaries(s.t, s.known, kind, namespace, "canary")
	return map[string]any{
		"kind": kind.Kind + "List", "apiVersion": kind.GroupVersion().String(),
		"metadata": map[string]string{"resourceVersion": "9"}, "items": []any{item},
	}
}

// kept are the fields of which the text may be in a collection, with the reason: RESOURCE[.GROUP] is empty
// for all resources.
func kept() []struct{ resource, fields, reason string } {
	const security = `seLinuxOptions|runAsUser|seccompProfile|appArmorProfile|supplementalGroupsPolicy|fsGroupChangePolicy|sysctls|seLinuxChangePolicy|capabilities|procMount`
	const pod = `nodeName|nodeSelector|affinity|tolerations|topologySpreadConstraints|schedulerName|schedulingGates|priorityClassName|preemptionPolicy|restartPolicy|runtimeClassName|overhead|resources|` +
		`resourceClaims.name|serviceAccountName|volumes.persistentVolumeClaim.claimName|os.name|((containers|initContainers).)?securityContext.(` + security + `)|` +
		`(containers|initContainers).(name|resources|ports|restartPolicy)`
	const template = `metadata.(labels|finalizers)`
	const whole = `(spec|status)`
	return []struct{ resource, fields, reason string }{
		{"", `metadata.(uid|resourceVersion|finalizers|ownerReferences)`, "they identify an object and its owners"},
		{"", `metadata.labels`, "selectors of budgets, webhooks and Services select by any label"},
		{
			"", `metadata.managedFields.(manager|operation|apiVersion|subresource|fieldsType)`,
			"checks name who writes through an API that is removed",
		},
		{
			"", `(spec|spec.jobTemplate.spec).template.(` + template + `|spec.(` + pod + `))`,
			"the placement, the quotas, the level of Pod Security and the account of the pods of a template",
		},
		{"pods", `spec.(` + pod + `)`, "the placement and the eviction of pods"},
		{"", `status.conditions.(type|status|reason)`, "why an object is as it is"},
		{"", `spec.(selector|strategy|updateStrategy)`, "how pods are replaced"},
		{
			"statefulsets.apps", `spec.(podManagementPolicy|volumeClaimTemplates.metadata.name)`,
			"in which order pods are created, and with which volumes",
		},
		{"pods", `status.(phase|(containerStatuses|initContainerStatuses).state.waiting.reason)`, "whether the pod has ended, and why it waits"},
		{"routes.route.openshift.io", `status.ingress.(routerName|conditions.(type|status|reason))`, "which routers admit it"},
		{"cronjobs.batch", `spec.(schedule|timeZone)`, "when an API was requested"},
		{"jobs.batch", `spec.podFailurePolicy`, "whether an evicted pod counts as failed"},
		{"apps", `status.(currentRevision|updateRevision)`, "whether a rollout has ended"},
		{"configmaps named", `(data|binaryData)`, "a check reads the ConfigMap by its name"},
		{
			"nodes", `(spec.taints|spec.providerID|status.(phase|capacity|allocatable|conditions|addresses|nodeInfo))`,
			"the placement of pods, and the state of nodes",
		},
		{"namespaces", whole, "why a namespace is not deleted"},
		{"limitranges", `spec`, "which pods are refused"},
		{"resourcequotas", whole, "which pods are refused"},
		{"clusterresourcequotas.quota.openshift.io", `(spec.quota|status.(total|namespaces))`, "which pods are refused"},
		{"runtimeclasses.node.k8s.io", `(overhead|scheduling)`, "which pods are refused, and their placement"},
		{"persistentvolumeclaims", `(spec.(volumeName|storageClassName|accessModes|resources)|status.phase)`, "which nodes reach a volume"},
		{
			"persistentvolumes", `(spec.(nodeAffinity|csi.driver|claimRef|storageClassName|accessModes|capacity)|status.phase)`,
			"which nodes reach a volume",
		},
		{"services", `spec.(type|ports)`, "which webhooks respond"},
		{"endpointslices.discovery.k8s.io", `(addressType|ports|endpoints.(conditions|nodeName))`, "which webhooks respond"},
		{"leases.coordination.k8s.io", `spec`, "which process holds a run"},
		{
			"certificatesigningrequests.certificates.k8s.io", `(spec.(signerName|username|groups|usages)|status.conditions)`,
			"which nodes wait for a certificate",
		},
		{"customresourcedefinitions.apiextensions.k8s.io", whole, "schemas are compared with those of the release"},
		{"apiservices.apiregistration.k8s.io", `status`, "which APIs do not respond"},
		{"apirequestcounts.apiserver.openshift.io", whole, "who requests an API that is removed"},
		{"admissionregistration.k8s.io", `(spec|status|webhooks)`, "what is refused"},
		{
			"openshift.io",
			`(spec.(managementState|migration|storage)|status.(conditions.(type|status|reason|message)|phase|errorMessage|failureMessage|nodeStatuses|migration|storage|[a-zA-Z]+.conditions.(type|status|reason|message)))`,
			"what the platform reports of itself",
		},
		{"machinehealthchecks.machine.openshift.io", whole, "which nodes are replaced"},
		{"machinesets.machine.openshift.io", `status`, "why no machine is created"},
		{"machineconfiguration.openshift.io", whole, "how nodes are updated"},
		{"poddisruptionbudgets.policy", whole, "which pods are evicted"},
		{"routes.route.openshift.io", `(spec.host|status.ingress.host)`, "where the monitoring responds"},
		{"priorityclasses.scheduling.k8s.io", `(globalDefault|preemptionPolicy)`, "which pods are evicted"},
		{"storage.k8s.io", `(provisioner|volumeBindingMode|spec)`, "which nodes reach a volume"},
		{"clusteroperators.config.openshift.io", `(spec|status.(conditions|versions|relatedObjects))`, "the state of the cluster"},
		{
			"infrastructures.config.openshift.io",
			`status.(infrastructureName|platform|platformStatus.(type|azure.cloudName|(baremetal|openstack|ovirt|vsphere|nutanix).loadBalancer.type)|controlPlaneTopology|infrastructureTopology|` +
				`cpuPartitioning|apiServerURL|apiServerInternalURI|etcdDiscoveryDomain)`, "what the cluster runs on",
		},
		{"config.openshift.io", whole, "the configuration of the cluster: which updates there are, and from where images are pulled"},
		{"operator.openshift.io", whole, "from where images are pulled, and boot images"},
		{"upgradeconfigs.upgrade.managed.openshift.io", `(spec.(text|userData)|status)`, "when an update starts"},
	}
}

// allowed is the reason for which a text of a field may be in a collection; empty where it may not.
func allowed(resource, field string, used map[string]bool) string {
	for _, each := range kept() {
		switch {
		case each.resource != "" && each.resource != resource && !strings.HasSuffix(resource, "."+each.resource):
		case (resource == "infrastructures.config.openshift.io" || resource == "clusteroperators.config.openshift.io") &&
			each.resource == "config.openshift.io":
		case regexp.MustCompile(`^` + each.fields + `(\.|$)`).MatchString(field):
			used[each.resource+" "+each.fields] = true
			return each.reason
		}
	}
	return ""
}

// encodedText matches what may be a text in base64.
var encodedText = regexp.MustCompile(`[A-Za-z0-9+/]{24,}=*`)

// texts are the content of each file of a collection, with what is in base64.
func texts(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		text := string(content)
		for _, each := range encodedText.FindAllString(text, -1) {
			if plain, err := base64.StdEncoding.DecodeString(each); err == nil {
				text += "\n" + string(plain)
			}
		}
		found[filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator)))] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// resourceOf is the resource of a file of a collection.
func resourceOf(path string) string {
	parts := strings.Split(strings.TrimSuffix(path, ".yaml"), "/")
	if parts[0] == "namespaces" {
		parts = parts[1:]
	}
	group, resource := parts[1], parts[2]
	if group == "core" {
		if resource == "configmaps" && len(parts) == 4 {
			return "configmaps named"
		}
		return resource
	}
	return resource + "." + group
}

// TestAttacksOnCollectedFields holds that no text of a field that no check reads, and no password of a URL, is in a collection.
func TestAttacksOnCollectedFields(t *testing.T) {
	used := map[string]bool{}
	for _, redact := range []bool{false, true} {
		t.Run(fmt.Sprintf("Redact=%t", redact), func(t *testing.T) {
			found := 0
			for path, text := range texts(t, collected(t, support.CollectNeeds().Optional, redact)) {
				for _, secret := range []string{password, "user:", "proxy.corp.test"} {
					if strings.Contains(text, secret) && (redact || secret != "proxy.corp.test") {
						t.Errorf("%s has %q: %.300s", path, secret, text[strings.Index(text, secret)-100:])
					}
				}
				if path == "preflight-collection.json" {
					continue
				}
				fields := map[string]bool{}
				for _, match := range canaries.FindAllStringSubmatch(text, -1) {
					fields[match[1]] = true
				}
				for _, field := range slices.Sorted(maps.Keys(fields)) {
					if found++; allowed(resourceOf(path), field, used) == "" {
						t.Errorf("%s has %s, which no check reads", resourceOf(path), field)
					}
				}
			}
			if found < 100 {
				t.Errorf("found %d fields: the objects had no canaries", found)
			}
		})
	}
	for _, each := range kept() {
		if !used[each.resource+" "+each.fields] {
			t.Errorf("%s %s is in no collection: remove it here", each.resource, each.fields)
		}
	}
}

// collected is a collection of the server in a directory.
func collected(t *testing.T, reads []access.Request, redact bool) string {
	t.Helper()
	served := httptest.NewServer(newServer(t, reads))
	t.Cleanup(served.Close)
	c, err := cluster.Connect(&rest.Config{Host: served.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "archive")
	into, err := writing.Create(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	made, err := gathering.Gather(t.Context(), c, gathering.Options{Reads: reads, Redact: redact, Step: func(string) {}}, into)
	if err == nil {
		_, err = into.Commit()
	}
	if err := errors.Join(err, into.Close()); err != nil {
		t.Fatal(err)
	}
	for _, missing := range made.Missing {
		t.Errorf("missing: %s", missing)
	}
	return dir
}
