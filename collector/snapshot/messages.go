package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/pager"
	kjson "sigs.k8s.io/json"

	"github.com/openshift/update-preflight/collector/snapshot/field"
)

// message is an object of an API of Kubernetes, which has an encoding in protobuf.
type message interface {
	runtime.Object
	metav1.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// reader reads the objects of a resource. A response of the API server in protobuf, which only archives lack, is
// reduced before it is decoded: of a pod of ten kilobytes, a tenth is kept. A response in JSON is reduced
// afterwards, by the same rules.
type reader[T any] struct {
	cluster  *Cluster
	resource schema.GroupVersionResource
	rules    field.Rules
	// platform are the rules for the objects in namespaces of the cluster itself; nil for the same.
	platform field.Rules
	// most is how many objects are read; maxObjects where it is 0.
	most int
	// keep drops more of an object; nil for nothing.
	keep func(*T)
	// decoded are the objects by what they have in common; nil where nothing is own.
	decoded map[string]T
	// pages are the objects that have been read, and count is how many they are.
	pages [][]T
	count int
	// body, common and own are used for one page and object after another.
	body        bytes.Buffer
	common, own []byte
}

// all are all objects. More than most are an error, since a part of them would look like all.
func (r *reader[T]) all(ctx context.Context) ([]T, error) {
	if r.rules.Owns() {
		r.decoded = map[string]T{}
	}
	pages := pager.New(r.page)
	pages.PageBufferSize = 1
	if err := pages.EachListItem(ctx, metav1.ListOptions{}, func(runtime.Object) error { return nil }); err != nil {
		return nil, err
	}
	return slices.Concat(r.pages...), nil
}

// page reads a page, and returns the metadata of its list alone: appending its objects to others again and again
// would take several times their memory.
func (r *reader[T]) page(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	prefix := "/apis"
	if r.resource.Group == "" {
		prefix = "/api"
	}
	// The client of any group decodes the error of an API server.
	request := r.cluster.api.Kubernetes.CoreV1().RESTClient().Get().UseProtobufAsDefault().
		AbsPath(path.Join(prefix, r.resource.Group, r.resource.Version, r.resource.Resource)).VersionedParams(&options, scheme.ParameterCodec)
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	r.body.Reset()
	_, err = r.body.ReadFrom(body)
	if err := errors.Join(err, body.Close()); err != nil {
		return nil, fmt.Errorf("the response cannot be read: %w", err)
	}
	encoded, ok := bytes.CutPrefix(r.body.Bytes(), []byte("k8s\x00")) // how Kubernetes begins an object
	if !ok {
		return r.pageOfJSON(r.body.Bytes())
	}
	if err := r.checkKind(encoded); err != nil {
		return nil, err
	}
	found := &metav1.PartialObjectMetadataList{}
	// The list is in the field "raw" of runtime.Unknown.
	return found, eachMessage(encoded, func(number protowire.Number, value []byte) error {
		if number != fieldRaw {
			return nil
		}
		return r.readList(&found.ListMeta, value)
	})
}

// checkKind is an error for a list of another kind, which package cluster has weighed as such. Of any kind, only the
// metadata can be read, which is less.
func (r *reader[T]) checkKind(list []byte) error {
	if reflect.TypeFor[T]() == reflect.TypeFor[metav1.PartialObjectMetadata]() {
		return nil
	}
	var stated runtime.TypeMeta // later fields replace earlier ones
	err := eachMessage(list, func(number protowire.Number, value []byte) error {
		if number != fieldKind {
			return nil
		}
		return stated.Unmarshal(value)
	})
	if want := reflect.TypeFor[T]().Name() + "List"; err == nil && stated.Kind != want {
		err = fmt.Errorf("the response is a %q, want a %s", stated.Kind, want)
	}
	return err
}

// The fields of runtime.Unknown and of each list of Kubernetes (generated.proto).
const (
	fieldKind  protowire.Number = 1
	fieldRaw   protowire.Number = 2
	fieldMeta  protowire.Number = 1
	fieldItems protowire.Number = 2
	// fieldNamespace is of ObjectMeta.
	fieldNamespace protowire.Number = 3
)

func (r *reader[T]) readList(into *metav1.ListMeta, list []byte) error {
	count := 0
	err := eachMessage(list, func(number protowire.Number, value []byte) error {
		switch number { //nolint:exhaustive // lists have no other fields
		case fieldMeta:
			return into.Unmarshal(value)
		case fieldItems:
			count++
		}
		return nil
	})
	if err := errors.Join(err, r.begin(count)); err != nil {
		return err
	}
	return eachMessage(list, func(number protowire.Number, value []byte) error {
		if number != fieldItems {
			return nil
		}
		return r.add(value)
	})
}

// begin begins a page with that many objects.
func (r *reader[T]) begin(count int) error {
	most := cmp.Or(r.most, maxObjects)
	if r.count += count; r.count > most {
		return fmt.Errorf("the list contains more than %d objects", most)
	}
	r.pages = append(r.pages, make([]T, 0, count))
	return nil
}

// eachMessage calls do for each field of a message all of whose fields are messages or texts.
func eachMessage(message []byte, do func(protowire.Number, []byte) error) error {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 || kind != protowire.BytesType {
			return field.ErrEncoding
		}
		value, size := protowire.ConsumeBytes(message[tag:])
		if size < 0 {
			return field.ErrEncoding
		}
		message = message[tag+size:]
		if err := do(number, value); err != nil {
			return err
		}
	}
	return nil
}

// fieldOf is the value of a field that is a message or a text; nil where there is none.
func fieldOf(message []byte, wanted protowire.Number) []byte {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return nil
		}
		size := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if size < 0 {
			return nil
		}
		if number == wanted && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message[tag:])
			return value
		}
		message = message[tag+size:]
	}
	return nil
}

// add decodes an object of the last page.
func (r *reader[T]) add(encoded []byte) error {
	rules := r.rules
	if r.platform != nil && OfCluster(string(fieldOf(fieldOf(encoded, fieldMeta), fieldNamespace))) {
		rules = r.platform
	}
	var err error
	if r.common, r.own, err = rules.Split(encoded, r.common[:0], r.own[:0]); err != nil {
		return err
	}
	object, ok := r.decoded[string(r.common)]
	if !ok {
		if err := decode(&object, r.common); err != nil {
			return err
		}
		if r.decoded != nil {
			r.decoded[string(r.common)] = object
		}
	}
	if err := decode(&object, r.own); err != nil {
		return err
	}
	if of, ok := any(&object).(message); ok {
		trim(of)
	}
	if r.keep != nil {
		r.keep(&object)
	}
	last := &r.pages[len(r.pages)-1]
	*last = append(*last, object)
	return nil
}

func encode(object any) ([]byte, error) {
	of, ok := object.(message)
	if !ok {
		return nil, fmt.Errorf("%T has no encoding in protobuf", object)
	}
	return of.Marshal()
}

func decode(object any, encoded []byte) error {
	if of, ok := object.(message); ok && len(encoded) > 0 {
		return of.Unmarshal(encoded)
	}
	return nil
}

func (r *reader[T]) pageOfJSON(text []byte) (runtime.Object, error) {
	var list struct {
		metav1.ListMeta `json:"metadata"`

		Items []json.RawMessage `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &list); err != nil {
		return nil, fmt.Errorf("the list cannot be decoded: %w", err)
	}
	if err := r.begin(len(list.Items)); err != nil {
		return nil, err
	}
	for _, text := range list.Items {
		var object T
		if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &object); err != nil {
			var named metav1.PartialObjectMetadata
			_ = kjson.UnmarshalCaseSensitivePreserveInts(text, &named) // the name is empty otherwise
			return nil, fmt.Errorf("%s %s/%s cannot be decoded: %w", r.resource.Resource, named.Namespace, named.Name, err)
		}
		encoded, err := encode(&object)
		if err != nil {
			return nil, err
		}
		if err := r.add(encoded); err != nil {
			return nil, err
		}
	}
	return &metav1.PartialObjectMetadataList{ListMeta: list.ListMeta}, nil
}

// allBut are rules that keep the fields of a type without the managed fields, which no check reads, and without others, by their
// paths in JSON.
func allBut[T any](paths ...string) field.Rules {
	of := field.Rules{}
	of.Drop(reflect.TypeFor[T](), append(paths, "metadata.managedFields")...)
	return of
}
