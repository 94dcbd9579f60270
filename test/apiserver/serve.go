package apiserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// asked is a request for objects.
type asked struct {
	*http.Request

	key
	subresource string
	verb        string
	user        string
}

// parse reads what a request is for; false for one that is not for objects.
func parse(r *http.Request) (asked, bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	a := asked{Request: r, user: cmp.Or(r.Header.Get("Impersonate-User"), User)}
	switch {
	case parts[0] == "api" && len(parts) > 2:
		a.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		a.Group, a.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return a, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		a.namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	a.Resource, a.name, a.subresource = parts[0], parts[1], parts[2]
	verbs := map[string]string{
		http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
		http.MethodDelete: "delete",
	}
	a.verb = verbs[r.Method]
	switch {
	case a.verb == "get" && a.name == "" && r.URL.Query().Get("watch") != "":
		a.verb = "watch"
	case a.verb == "get" && a.name == "":
		a.verb = "list"
	case a.verb == "delete" && a.name == "":
		a.verb = "deletecollection"
	}
	return a, true
}

func (a asked) attributes() Request {
	return Request{Verb: a.verb, Group: a.Group, Resource: a.Resource, Subresource: a.subresource, Namespace: a.namespace, Name: a.name}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	a, forObjects := parse(r)
	if !forObjects {
		s.discover(w, r.URL.Path)
		return
	}
	if a.verb == "watch" {
		s.watch(w, a)
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if a.subresource == "log" && !s.mayNot(a.user, a.attributes()) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, s.logs[a.namespace+"/"+a.name+"/"+r.URL.Query().Get("container")])
		return
	}
	answer, err := s.answer(a)
	respond(w, answer, err)
}

// respond writes an object, or the status of an error.
func respond(w http.ResponseWriter, answer any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		failed := status.Status()
		failed.APIVersion, failed.Kind = "v1", "Status"
		w.WriteHeader(int(failed.Code))
		answer = failed
	} else if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(answer) // the client sees that it is torn
}

func (s *Server) answer(a asked) (any, error) {
	of := a.GroupResource()
	if answer, reviewed, err := s.review(a); reviewed {
		return answer, err
	}
	if _, served := s.kinds[a.GroupVersionResource]; !served {
		return nil, apierrors.NewNotFound(of, a.name)
	}
	if s.mayNot(a.user, a.attributes()) {
		return nil, a.forbidden()
	}
	switch a.verb {
	case "list":
		return s.list(a)
	case "get":
		found, ok := s.store.objects[a.key]
		if !ok {
			return nil, apierrors.NewNotFound(of, a.name)
		}
		return a.metadataOnly(found), nil
	case "delete", "deletecollection":
		return s.delete(a)
	}
	return s.write(a)
}

// forbidden is the error of a request that is refused, with the text of an API server.
func (a asked) forbidden() error {
	//nolint:staticcheck // the text of an API server
	return apierrors.NewForbidden(a.GroupResource(), a.name,
		fmt.Errorf("User %q cannot %s resource %q in API group %q in the namespace %q", a.user, a.verb, a.Resource, a.Group, a.namespace))
}

// metadataOnly is an object as the request accepts it.
func (a asked) metadataOnly(content map[string]any) map[string]any {
	if !strings.Contains(a.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return content
	}
	return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": content["metadata"]}
}

func (a asked) selection() (selection, error) {
	selected, err := labels.Parse(a.URL.Query().Get("labelSelector"))
	name, _ := strings.CutPrefix(a.URL.Query().Get("fieldSelector"), "metadata.name=")
	if strings.ContainsAny(name, "=!") {
		name = "" // of another field: all are sent
	}
	return selection{of: a.key, labels: selected, name: name}, err
}

func (s *Server) list(a asked) (any, error) {
	selected, err := a.selection()
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	items := []any{}
	for _, at := range s.store.list(selected) {
		items = append(items, a.metadataOnly(s.store.objects[at]))
	}
	version, kind := a.GroupVersion().String(), s.kinds[a.GroupVersionResource]+"List"
	if strings.Contains(a.Header.Get("Accept"), "as=PartialObjectMetadata") {
		version, kind = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	return map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"resourceVersion": fmt.Sprint(s.store.version)},
		"items": items,
	}, nil
}

func (s *Server) delete(a asked) (any, error) {
	options, err := s.body(a)
	if err != nil {
		return nil, err
	}
	selected, err := a.selection()
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	targets := []key{a.key}
	if a.verb == "deletecollection" {
		targets = s.store.list(selected)
	} else if found, ok := s.store.objects[a.key]; !ok {
		return nil, apierrors.NewNotFound(a.GroupResource(), a.name)
	} else if conditions, ok := options["preconditions"].(map[string]any); ok && differs(metadataOf(found), conditions) {
		return nil, apierrors.NewConflict(a.GroupResource(), a.name, errors.New("the preconditions are not met"))
	}
	if !a.isDryRun() {
		s.wrote(a)
		for _, at := range targets {
			s.store.remove(at)
		}
	}
	return map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Success"}, nil
}

// differs reports whether a written object is another one, or of another version.
func differs(present, written map[string]any) bool {
	return slices.ContainsFunc([]string{"uid", "resourceVersion"}, func(field string) bool {
		wanted := text(written, field)
		return wanted != "" && wanted != text(present, field)
	})
}

func (a asked) isDryRun() bool { return a.URL.Query().Get("dryRun") != "" }

func (s *Server) wrote(a asked) {
	at := a.Resource
	if a.subresource != "" {
		at += "/" + a.subresource
	}
	s.writes = append(s.writes, strings.TrimSuffix(a.verb+" "+at+" "+strings.TrimPrefix(a.namespace+"/"+a.name, "/"), " "))
}

// write creates, replaces or patches an object.
func (s *Server) write(a asked) (any, error) {
	content, err := s.body(a)
	if err != nil {
		return nil, err
	}
	if a.verb == "create" {
		if _, a.name = nameOf(content); a.name == "" {
			a.name = fmt.Sprintf("%s%05d", text(metadataOf(content), "generateName"), s.store.version)
		}
	}
	present, exists := s.store.objects[a.key]
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	switch {
	case a.verb == "create" && exists:
		return nil, apierrors.NewAlreadyExists(a.GroupResource(), a.name)
	case a.verb != "create" && !exists && kind != "application/apply-patch+yaml":
		return nil, apierrors.NewNotFound(a.GroupResource(), a.name)
	case exists && differs(metadataOf(present), metadataOf(content)):
		return nil, apierrors.NewConflict(a.GroupResource(), a.name, errors.New("the object has been modified"))
	}
	switch {
	case exists && (a.verb == "patch" || a.subresource == "status"):
		patched := clone(present)
		if a.verb == "update" {
			content = map[string]any{"status": content["status"]}
		}
		merge(patched, content)
		content = patched
	case exists && content["status"] == nil && present["status"] != nil:
		content["status"] = present["status"]
	}
	content["apiVersion"], content["kind"] = a.GroupVersion().String(), s.kinds[a.GroupVersionResource]
	if a.isDryRun() {
		return content, nil
	}
	s.wrote(a)
	metadataOf(content)["managedFields"] = []any{map[string]any{
		"manager": a.user, "operation": "Update", "apiVersion": a.GroupVersion().String(), "time": time.Now().UTC().Format(time.RFC3339),
		"fieldsType": "FieldsV1", "fieldsV1": map[string]any{},
	}}
	return s.store.put(a.key, content), nil
}

// body is the JSON of a request; empty for none.
func (s *Server) body(a asked) (map[string]any, error) {
	text, err := io.ReadAll(a.Body)
	content := map[string]any{}
	if err != nil || len(text) == 0 {
		return content, err
	}
	if strings.Contains(a.Header.Get("Content-Type"), "protobuf") {
		object, _, err := s.codecs.UniversalDeserializer().Decode(text, nil, nil)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if text, err = json.Marshal(object); err != nil {
			return nil, err
		}
	}
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s: %v", a.Header.Get("Content-Type"), err))
	}
	return content, nil
}

// review answers the reviews of permissions, and of who the user is; false for another resource.
func (s *Server) review(a asked) (answer any, reviewed bool, err error) {
	switch a.Resource {
	case "selfsubjectreviews":
		status := map[string]any{"userInfo": map[string]any{"username": a.user}}
		return map[string]any{"apiVersion": a.GroupVersion().String(), "kind": "SelfSubjectReview", "status": status}, true, nil
	case "selfsubjectrulesreviews":
		all := []string{"*"}
		status := map[string]any{
			"resourceRules":    []any{map[string]any{"verbs": all, "apiGroups": all, "resources": all}},
			"nonResourceRules": []any{}, "incomplete": false,
		}
		return map[string]any{"apiVersion": a.GroupVersion().String(), "kind": "SelfSubjectRulesReview", "status": status}, true, nil
	case "selfsubjectaccessreviews":
		content, err := s.body(a)
		if err != nil {
			return nil, true, err
		}
		var review struct {
			Spec struct {
				ResourceAttributes Request `json:"resourceAttributes"`
			} `json:"spec"`
		}
		encoded, err := json.Marshal(content)
		if err == nil {
			err = json.Unmarshal(encoded, &review)
		}
		content["apiVersion"], content["kind"] = a.GroupVersion().String(), "SelfSubjectAccessReview"
		content["status"] = map[string]any{"allowed": !s.mayNot(a.user, review.Spec.ResourceAttributes)}
		return content, true, err
	}
	return nil, false, nil
}

// watch sends changes until the request ends. A client that wants the present objects first lists them instead.
func (s *Server) watch(w http.ResponseWriter, a asked) {
	selected, err := a.selection()
	s.mutex.Lock()
	_, served := s.kinds[a.GroupVersionResource]
	refused := s.mayNot(a.user, a.attributes())
	s.mutex.Unlock()
	switch {
	case a.URL.Query().Get("sendInitialEvents") != "":
		err = apierrors.NewInvalid(schema.GroupKind{Group: a.Group, Kind: a.Resource}, "", nil)
	case !served:
		err = apierrors.NewNotFound(a.GroupResource(), "")
	case refused:
		err = a.forbidden()
	}
	if err != nil {
		respond(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	var from int
	_, _ = fmt.Sscan(a.URL.Query().Get("resourceVersion"), &from) // 0 for none
	for {
		s.mutex.Lock()
		events, changed, closed := s.store.events, s.store.changed, s.store.closed
		s.mutex.Unlock()
		for _, e := range events {
			if e.version > from && selected.has(e.key, e.content) {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": e.kind, "object": a.metadataOnly(e.content)}) // the client sees that it is torn
			}
			from = max(from, e.version)
		}
		_ = http.NewResponseController(w).Flush()
		if closed {
			return
		}
		select {
		case <-a.Context().Done():
			return
		case <-changed:
		}
	}
}

// discover answers which APIs are served.
func (s *Server) discover(w http.ResponseWriter, path string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case path == "/version":
		respond(w, map[string]any{"major": "1", "minor": "31", "gitVersion": "v1.31.8"}, nil)
	case path == "/metrics": // no deprecated API is requested
		fmt.Fprintln(w, "# TYPE apiserver_requested_deprecated_apis gauge")
	case path == "/api":
		respond(w, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}}, nil)
	case path == "/apis":
		respond(w, s.groups(), nil)
	case parts[0] == "api":
		respond(w, s.resources(schema.GroupVersion{Version: parts[1]}), nil)
	case parts[0] == "apis" && len(parts) == 3:
		respond(w, s.resources(schema.GroupVersion{Group: parts[1], Version: parts[2]}), nil)
	default:
		respond(w, nil, apierrors.NewNotFound(schema.GroupResource{}, path))
	}
}

func (s *Server) groups() any {
	versions := map[string][]map[string]any{}
	for resource := range s.kinds {
		of := map[string]any{"groupVersion": resource.GroupVersion().String(), "version": resource.Version}
		isSame := func(other map[string]any) bool { return fmt.Sprint(other) == fmt.Sprint(of) }
		if resource.Group != "" && !slices.ContainsFunc(versions[resource.Group], isSame) {
			versions[resource.Group] = append(versions[resource.Group], of)
		}
	}
	groups := []any{}
	for name, served := range versions {
		slices.SortFunc(served, func(a, b map[string]any) int { // the stable one is preferred
			return version.CompareKubeAwareVersionStrings(fmt.Sprint(b["version"]), fmt.Sprint(a["version"]))
		})
		groups = append(groups, map[string]any{"name": name, "versions": served, "preferredVersion": served[0]})
	}
	return map[string]any{"apiVersion": "v1", "kind": "APIGroupList", "groups": groups}
}

func (s *Server) resources(of schema.GroupVersion) any {
	resources := []any{}
	for resource, kind := range s.kinds {
		if resource.GroupVersion() != of {
			continue
		}
		namespaced := s.isNamespaced(resource)
		resources = append(resources, map[string]any{
			"name": resource.Resource, "kind": kind, "namespaced": namespaced,
			"verbs": []string{"create", "delete", "get", "list", "patch", "update", "watch"},
		})
		if s.statuses[resource] {
			resources = append(resources, map[string]any{
				"name": resource.Resource + "/status", "kind": kind, "namespaced": namespaced,
				"verbs": []string{"get", "patch", "update"},
			})
		}
	}
	return map[string]any{"apiVersion": "v1", "kind": "APIResourceList", "groupVersion": of.String(), "resources": resources}
}

// isNamespaced reports whether the objects of a resource are in namespaces.
func (s *Server) isNamespaced(of schema.GroupVersionResource) bool {
	if namespaced, known := s.scopes[of]; known {
		return namespaced
	}
	groups := []string{
		"config.openshift.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "admissionregistration.k8s.io",
		"certificates.k8s.io", "flowcontrol.apiserver.k8s.io", "scheduling.k8s.io", "machineconfiguration.openshift.io",
	}
	resources := []string{
		"nodes", "namespaces", "persistentvolumes", "componentstatuses", "clusterroles", "clusterrolebindings",
		"storageclasses", "csidrivers", "csinodes", "volumeattachments", "ingressclasses", "runtimeclasses",
	}
	return !slices.Contains(groups, of.Group) && !slices.Contains(resources, of.Resource)
}
