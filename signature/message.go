package signature

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"strings"
	"time"

	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/openshift/update-preflight/signature/refusal"
	"github.com/openshift/update-preflight/signature/store"
)

// OpenPGP numbers (RFC 9580, sections 5, 5.2.3.7, 9.1, 9.4 and 9.5).
const (
	tagSignature  = 2
	tagOnePass    = 4
	tagPublicKey  = 6
	tagCompressed = 8
	tagLiteral    = 11

	compressionZIP  = 1
	compressionZLIB = 2

	algorithmRSA         = 1
	algorithmRSASignOnly = 3
	algorithmECDSA       = 19
	algorithmEdDSALegacy = 22
	algorithmEd25519     = 27

	digestMD5       = 1
	digestRIPEMD160 = 3

	subpacketIssuer      = 16
	subpacketFingerprint = 33
)

// maxPackets is how many packets of a message are read: one more than any supported message has.
const maxPackets = 4

// maxDateSkew is the largest difference between the date of the literal packet and the date of the signature. gpg sets
// both within one run.
const maxDateSkew = 24 * time.Hour

// message is a well-formed signed message. Nothing in it is verified.
type message struct {
	issuer    uint64 // the ID of the key that it names as its signer
	body      []byte
	signature *packet.Signature
	unhashed  []byte // subpackets outside of the signature
}

// parseMessage parses a binary OpenPGP message of exactly a one-pass signature,
// literal data and a version 4 signature, possibly compressed as a whole. The
// library would skip unknown packets and decompress without bounds.
func parseMessage(data []byte) (*message, *refusal.Error) {
	packets, err := split(data)
	if err != nil {
		return nil, err
	}
	if len(packets) == 1 && packets[0].Tag == tagCompressed {
		if data, err = decompress(packets[0].Contents); err != nil {
			return nil, err
		}
		if packets, err = split(data); err != nil {
			return nil, err
		}
	}
	for _, p := range packets {
		if p.Tag == tagSignature && len(p.Contents) > 0 && p.Contents[0] != 4 {
			return nil, refusal.New(refusal.ReasonUnsupportedSignature, "signature packet of version %d; only version 4 is supported", p.Contents[0])
		}
	}
	if len(packets) != 3 || packets[0].Tag != tagOnePass || packets[1].Tag != tagLiteral || packets[2].Tag != tagSignature {
		return nil, malformed("not a single signed message as made by `gpg --sign`")
	}
	m := &message{}
	if err := m.parseSignature(packets[2]); err != nil {
		return nil, err
	}
	if err := m.parseOnePass(packets[0].Contents, packets[2].Contents); err != nil {
		return nil, err
	}
	return m, m.parseLiteral(packets[1].Contents)
}

func malformed(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.ReasonMalformedSignature, format, args...)
}

func split(data []byte) ([]*packet.OpaquePacket, *refusal.Error) {
	var packets []*packet.OpaquePacket
	for r := packet.NewOpaqueReader(bytes.NewReader(data)); ; {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, malformed("not a binary OpenPGP message: %w", err)
		}
		if packets = append(packets, p); len(packets) > maxPackets {
			return nil, malformed("more than %d packets", maxPackets)
		}
	}
	if len(packets) == 0 {
		return nil, malformed("empty")
	}
	return packets, nil
}

// decompress returns the content of a compressed packet, which must end with the compressed stream.
func decompress(contents []byte) ([]byte, *refusal.Error) {
	if len(contents) == 0 {
		return nil, malformed("compressed packet without content")
	}
	compressed := bytes.NewReader(contents[1:])
	var r io.Reader
	switch contents[0] {
	case compressionZIP:
		r = flate.NewReader(compressed)
	case compressionZLIB:
		var err error
		if r, err = zlib.NewReader(compressed); err != nil {
			return nil, malformed("cannot be decompressed: %w", err)
		}
	default:
		// bzip2 allows extreme expansion, and no signer of releases uses it.
		return nil, refusal.New(refusal.ReasonUnsupportedSignature, "compression algorithm %d; only ZIP and ZLIB are supported", contents[0])
	}
	data, err := io.ReadAll(io.LimitReader(r, store.MaxBytes+1))
	switch {
	case err != nil:
		return nil, malformed("cannot be decompressed: %w", err)
	case len(data) > store.MaxBytes:
		return nil, refusal.New(refusal.ReasonTooLarge, "decompresses to more than %d bytes", store.MaxBytes)
	case compressed.Len() > 0:
		return nil, malformed("%d bytes follow the compressed message", compressed.Len())
	}
	return data, nil
}

// parseOnePass parses the one-pass packet, which must match the signature packet.
func (m *message) parseOnePass(onePass, signature []byte) *refusal.Error {
	if len(onePass) != 13 || onePass[0] != 3 || onePass[12] != 1 {
		return malformed("the one-pass packet is not a single one of version 3")
	}
	if onePass[1] != signature[1] || onePass[2] != signature[3] || onePass[3] != signature[2] {
		return malformed("the one-pass packet does not match the signature packet")
	}
	m.issuer = binary.BigEndian.Uint64(onePass[4:12])
	if id := m.signature.IssuerKeyId; id != nil && *id != m.issuer {
		return malformed("the one-pass packet names key %016X, the signature key %016X", m.issuer, *id)
	}
	return nil
}

// parseLiteral parses the signed bytes. Their format, file name and date are not
// covered by the signature; they must have the form that gpg writes. With --textmode,
// the format is text.
func (m *message) parseLiteral(contents []byte) *refusal.Error {
	if len(contents) < 2 || !strings.ContainsRune("btu", rune(contents[0])) {
		return malformed("the literal packet is neither binary data nor text")
	}
	end := 2 + int(contents[1])
	if len(contents) < end+4 {
		return malformed("the literal packet is cut short")
	}
	for _, c := range contents[2:end] {
		if c < ' ' || c > '~' || c == '/' {
			return malformed("the literal packet has an invalid file name")
		}
	}
	date := time.Unix(int64(binary.BigEndian.Uint32(contents[end:])), 0)
	if skew := m.signature.CreationTime.Sub(date).Abs(); date.Unix() != 0 && skew > maxDateSkew {
		return malformed("the dates of the literal packet and the signature differ by %s", skew)
	}
	m.body = contents[end+4:]
	return nil
}

// parseSignature parses the signature packet, which must be in canonical form.
func (m *message) parseSignature(p *packet.OpaquePacket) *refusal.Error {
	// The library reports MD5 and RIPEMD-160 as unknown digests.
	if len(p.Contents) > 3 && (p.Contents[3] == digestMD5 || p.Contents[3] == digestRIPEMD160) {
		weak := refusal.New(refusal.ReasonWeakDigest, "signed with digest algorithm MD5 or RIPEMD-160, which can be forged")
		weak.CVOAccepts = nil // the signature itself is not verified
		return weak
	}
	parsed, err := p.Parse()
	var unsupported pgperrors.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		return refusal.New(refusal.ReasonUnsupportedSignature, "not supported by the OpenPGP library: %w", err)
	case err != nil:
		return malformed("the signature packet cannot be read: %w", err)
	}
	var ok bool
	if m.signature, ok = parsed.(*packet.Signature); !ok {
		return malformed("the signature packet does not parse as a signature")
	}
	if m.signature.SigType != packet.SigTypeBinary && m.signature.SigType != packet.SigTypeText {
		return refusal.New(refusal.ReasonUnsupportedSignature, "signature of type %#02x; only signatures of documents are supported",
			p.Contents[1])
	}
	// Version, type, algorithms, hashed subpackets, unhashed subpackets, two
	// bytes of the hash, numbers (RFC 9580, 5.2.3); lengths were checked by the
	// library.
	hashed := 6 + int(binary.BigEndian.Uint16(p.Contents[4:]))
	unhashed := hashed + 2 + int(binary.BigEndian.Uint16(p.Contents[hashed:]))
	m.unhashed = p.Contents[hashed+2 : unhashed]
	return checkNumbers(p.Contents[2], p.Contents[unhashed+2:])
}

// checkNumbers requires the integers of the signature: as many as the algorithm defines, each in its shortest form.
func checkNumbers(algorithm byte, numbers []byte) *refusal.Error {
	var want int
	switch algorithm {
	case algorithmRSA, algorithmRSASignOnly:
		want = 1
	case algorithmECDSA, algorithmEdDSALegacy:
		want = 2
	case algorithmEd25519:
		if len(numbers) != 64 {
			return malformed("the signature packet has %d bytes of Ed25519 signature", len(numbers))
		}
		return nil
	default:
		return refusal.New(refusal.ReasonUnsupportedSignature, "public key algorithm %d", algorithm)
	}
	for ; want > 0; want-- {
		if len(numbers) < 3 {
			return malformed("the signature packet is cut short")
		}
		length := int(binary.BigEndian.Uint16(numbers))
		size := (length + 7) / 8
		if len(numbers) < 2+size || size*8-length != bits.LeadingZeros8(numbers[2]) {
			return malformed("the signature packet has an integer that is not in its shortest form")
		}
		numbers = numbers[2+size:]
	}
	if len(numbers) != 0 {
		return malformed("%d bytes follow the signature", len(numbers))
	}
	return nil
}
