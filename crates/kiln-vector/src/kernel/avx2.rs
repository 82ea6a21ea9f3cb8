#![expect(unsafe_code, reason = "kernels are compiled for CPU features found at run time")]

//! The kernels for x86-64 with AVX2: 32 bytes at a time.
//!
//! A loop over floats is the scalar one, compiled for AVX2: fixed blocks of lanes become vector
//! registers by themselves. Bytes and bits need instructions that no compiler chooses:
//!
//! ```text
//! bytes   |a| * (b with the sign of a)   vpmaddubsw: pairs into 16 bits, 2 * 127 * 127 fits
//!         pairs of pairs into 32 bits    vpmaddwd by ones
//! bits    both nibbles of every byte     vpshufb in a table of bit counts
//!         bytes into 64 bits             vpsadbw
//! ```

use std::arch::x86_64::{
    __m256, __m256i, _mm_cvtsi64_si128, _mm_loadu_si128, _mm256_abs_epi8, _mm256_add_epi8,
    _mm256_add_epi32, _mm256_add_epi64, _mm256_add_ps, _mm256_and_si256, _mm256_cmpeq_epi8,
    _mm256_extract_epi64, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16,
    _mm256_maddubs_epi16, _mm256_movemask_epi8, _mm256_permute_ps, _mm256_permute2f128_ps,
    _mm256_permute2x128_si256, _mm256_sad_epu8, _mm256_set1_epi8, _mm256_set1_epi16,
    _mm256_setr_epi8, _mm256_setr_ps, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_sign_epi8,
    _mm256_slli_epi64, _mm256_srli_epi16, _mm256_storeu_ps, _mm256_sub_epi64, _mm256_xor_ps,
    _mm256_zextsi128_si256,
};

use super::{Kernels, Lanes, Level, plane_bytes, scalar};

/// The kernels, if this processor has what they need.
pub(super) fn kernels() -> Option<Kernels> {
    if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
        return None;
    }
    Some(Kernels {
        level: Level::Avx2,
        // SAFETY: the processor has the features asked for, by the check above; so in all below.
        dot: |lanes, a, b| unsafe { dot(lanes, a, b) },
        // SAFETY: as above.
        l2: |lanes, a, b| unsafe { l2(lanes, a, b) },
        // SAFETY: as above.
        dot_bytes: |a, b| unsafe { dot_bytes(a, b) },
        // SAFETY: as above.
        dot_bits: |code, planes| unsafe { dot_bits(code, planes) },
        // SAFETY: as above.
        and_count: |a, b| unsafe { and_count(a, b) },
        // SAFETY: as above.
        transform: |values| unsafe { transform(values) },
        // SAFETY: as above.
        join: |codes, scale, low, high, out| unsafe { join(codes, scale, low, high, out) },
        // SAFETY: as above.
        widen: |codes, scale, out| unsafe { widen(codes, scale, out) },
        // SAFETY: as above.
        zeros: |codes| unsafe { zeros(codes) },
        // SAFETY: as above.
        largest: |values| unsafe { largest(values) },
        // SAFETY: as above.
        round: |values, inverse, limit, codes| unsafe { round(values, inverse, limit, codes) },
        // SAFETY: as above.
        weigh: |lanes, values, codes| unsafe { weigh(lanes, values, codes) },
        // SAFETY: as above.
        turn: |values, signs, scale| unsafe { turn(values, signs, scale) },
        // SAFETY: as above.
        slice: |numbers, planes, stride| unsafe { slice(numbers, planes, stride) },
    })
}

#[target_feature(enable = "avx2,fma")]
fn dot(lanes: &mut Lanes, a: &[f32], b: &[f32]) {
    scalar::dot(lanes, a, b);
}

#[target_feature(enable = "avx2,fma")]
fn l2(lanes: &mut Lanes, a: &[f32], b: &[f32]) {
    scalar::l2(lanes, a, b);
}

/// The first three stages inside registers, the others as the compiler makes them.
#[target_feature(enable = "avx2,fma")]
pub(super) fn transform(values: &mut [f32]) {
    if values.len() < 8 {
        return scalar::transform(values);
    }
    // Turns the sign of the higher one of every two values 1, 2 and 4 apart.
    let signs = |places: u32| {
        let one = |at: u32| if places >> at & 1 == 1 { -0.0 } else { 0.0 };
        _mm256_setr_ps(one(0), one(1), one(2), one(3), one(4), one(5), one(6), one(7))
    };
    let (ones, twos, fours) = (signs(0b1010_1010), signs(0b1100_1100), signs(0b1111_0000));
    for eight in values.as_chunks_mut::<8>().0 {
        // Lower: b + a; higher: a + -b: the sums and differences of the definition.
        let x = load_floats(eight);
        let x = _mm256_add_ps(_mm256_permute_ps::<0b10_11_00_01>(x), _mm256_xor_ps(x, ones));
        let x = _mm256_add_ps(_mm256_permute_ps::<0b01_00_11_10>(x), _mm256_xor_ps(x, twos));
        let swapped = _mm256_permute2f128_ps::<1>(x, x);
        store_floats(eight, _mm256_add_ps(swapped, _mm256_xor_ps(x, fours)));
    }
    scalar::transform_from(values, 8);
}

#[target_feature(enable = "avx2,fma")]
fn join(codes: &[u8], scale: f32, low: &[u8], high: &[u8], out: &mut [f32]) {
    scalar::join(codes, scale, low, high, out);
}

#[target_feature(enable = "avx2,fma")]
fn widen(codes: &[u8], scale: f32, out: &mut [f32]) {
    scalar::widen(codes, scale, out);
}

#[target_feature(enable = "avx2,fma")]
fn largest(values: &[f32]) -> f32 {
    scalar::largest(values)
}

#[target_feature(enable = "avx2,fma")]
fn round(values: &[f32], inverse: f32, limit: f32, codes: &mut [u8]) {
    scalar::round(values, inverse, limit, codes);
}

#[target_feature(enable = "avx2,fma")]
fn weigh(lanes: &mut Lanes, values: &[f32], codes: &[u8]) -> i32 {
    scalar::weigh(lanes, values, codes)
}

#[target_feature(enable = "avx2,fma")]
fn turn(values: &mut [f32], signs: &[u32], scale: f32) {
    scalar::turn(values, signs, scale);
}

const WIDTH: usize = 32;

#[target_feature(enable = "avx2,fma")]
fn dot_bytes(a: &[u8], b: &[u8]) -> i32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<WIDTH>(), b.as_chunks::<WIDTH>());
    let ((a_pairs, a_odd), (b_pairs, b_odd)) = (a.as_chunks::<2>(), b.as_chunks::<2>());
    let mut sums = [_mm256_setzero_si256(); 2];
    for (a, b) in a_pairs.iter().zip(b_pairs) {
        sums[0] = _mm256_add_epi32(sums[0], products(load(&a[0]), load(&b[0])));
        sums[1] = _mm256_add_epi32(sums[1], products(load(&a[1]), load(&b[1])));
    }
    for (a, b) in a_odd.iter().zip(b_odd) {
        sums[0] = _mm256_add_epi32(sums[0], products(load(a), load(b)));
    }
    // Each 64-bit half-sum of two 32-bit numbers is put together outside of the registers.
    let sum = _mm256_add_epi32(sums[0], sums[1]);
    let halves = quarters(sum).map(|two| two as i32 + (two >> 32) as i32);
    halves.iter().sum::<i32>() + scalar::dot_bytes(a_rest, b_rest)
}

/// Eight sums of four products of signed bytes each.
#[inline]
#[target_feature(enable = "avx2")]
fn products(a: __m256i, b: __m256i) -> __m256i {
    let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(a), _mm256_sign_epi8(b, a));
    _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))
}

/// Blocks of code whose bit counts, tripled, fit a byte: 10 * 8 * 3.
const COUNTED: usize = 10;

#[target_feature(enable = "avx2,fma")]
fn dot_bits(code: &[u8], planes: &[u8]) -> i32 {
    let stride = plane_bytes(code.len());
    if planes.len() == 4 * stride {
        return dot_four(code, planes, stride);
    }
    let count = planes.len() / stride;
    let ones = |at: usize| and_count(code, &planes[at * stride..(at + 1) * stride]) << at;
    (0..count - 1).map(ones).sum::<i32>() - ones(count - 1)
}

/// [`dot_bits`] for four planes, with the code read once.
#[inline]
#[target_feature(enable = "avx2")]
fn dot_four(code: &[u8], planes: &[u8], stride: usize) -> i32 {
    let (first, rest) = planes.split_at(stride);
    let (second, rest) = rest.split_at(stride);
    let (third, fourth) = rest.split_at(stride);
    let zero = _mm256_setzero_si256();
    let mut sum = zero;
    let mut start = 0;
    while start < code.len() {
        let end = code.len().min(start + COUNTED * WIDTH);
        // One and two times the counts of the lower two planes, and the counts of the upper two.
        let (mut low, mut third_ones, mut fourth_ones) = (zero, zero, zero);
        let mut at = start;
        while at < end {
            let bits = load_some(&code[at..end]);
            let ones = |plane: &[u8]| {
                let plane = plane[at..].first_chunk().expect("planes are whole cache lines");
                count_bytes(_mm256_and_si256(bits, load(plane)))
            };
            let twice = ones(second);
            low = _mm256_add_epi8(low, _mm256_add_epi8(ones(first), _mm256_add_epi8(twice, twice)));
            third_ones = _mm256_add_epi8(third_ones, ones(third));
            fourth_ones = _mm256_add_epi8(fourth_ones, ones(fourth));
            at += WIDTH;
        }
        let fourth_ones = _mm256_slli_epi64::<1>(_mm256_sad_epu8(fourth_ones, zero));
        let high = _mm256_sub_epi64(_mm256_sad_epu8(third_ones, zero), fourth_ones);
        let all = _mm256_add_epi64(_mm256_sad_epu8(low, zero), _mm256_slli_epi64::<2>(high));
        sum = _mm256_add_epi64(sum, all);
        start = end;
    }
    quarters(sum).iter().sum::<i64>() as i32
}

#[target_feature(enable = "avx2,fma")]
fn and_count(a: &[u8], b: &[u8]) -> i32 {
    let zero = _mm256_setzero_si256();
    let mut sum = zero;
    for (a, b) in a.chunks(WIDTH).zip(b.chunks(WIDTH)) {
        let ones = count_bytes(_mm256_and_si256(load_some(a), load_some(b)));
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(ones, zero));
    }
    quarters(sum).iter().sum::<i64>() as i32
}

/// How many bits are 1 in each byte.
#[inline]
#[target_feature(enable = "avx2")]
fn count_bytes(bits: __m256i) -> __m256i {
    let table = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3,
        3, 4,
    );
    let nibble = _mm256_set1_epi8(0x0F);
    let low = _mm256_shuffle_epi8(table, _mm256_and_si256(bits, nibble));
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bits), nibble);
    _mm256_add_epi8(low, _mm256_shuffle_epi8(table, high))
}

#[inline]
#[target_feature(enable = "avx2")]
fn quarters(sum: __m256i) -> [i64; 4] {
    [
        _mm256_extract_epi64::<0>(sum),
        _mm256_extract_epi64::<1>(sum),
        _mm256_extract_epi64::<2>(sum),
        _mm256_extract_epi64::<3>(sum),
    ]
}

#[target_feature(enable = "avx2,fma")]
fn zeros(codes: &[u8]) -> u64 {
    let zero = _mm256_setzero_si256();
    let (blocks, rest) = codes.as_chunks::<WIDTH>();
    let mut found = scalar::zeros(rest) << (blocks.len() * WIDTH % 64);
    for (at, block) in blocks.iter().enumerate() {
        let same = _mm256_movemask_epi8(_mm256_cmpeq_epi8(load(block), zero)) as u32;
        found |= u64::from(same) << (at * WIDTH);
    }
    found
}

#[target_feature(enable = "avx2,fma")]
fn slice(numbers: &[u8], planes: &mut [u8], stride: usize) {
    let count = planes.len() / stride;
    for (at, numbers) in numbers.as_chunks::<WIDTH>().0.iter().enumerate() {
        // The bit of a plane is the highest of its byte in turn, from the highest plane on.
        let mut bits = load(numbers);
        for _ in count..8 {
            bits = _mm256_add_epi8(bits, bits);
        }
        for plane in planes.chunks_exact_mut(stride).rev() {
            let highest = _mm256_movemask_epi8(bits) as u32;
            plane[at * 4..at * 4 + 4].copy_from_slice(&highest.to_le_bytes());
            bits = _mm256_add_epi8(bits, bits);
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_floats(eight: &[f32; 8]) -> __m256 {
    // SAFETY: the reference is to 8 readable floats, and the load asks for no alignment.
    unsafe { _mm256_loadu_ps(eight.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_floats(eight: &mut [f32; 8], x: __m256) {
    // SAFETY: the reference is to 8 writable floats, and the store asks for no alignment.
    unsafe { _mm256_storeu_ps(eight.as_mut_ptr(), x) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; WIDTH]) -> __m256i {
    // SAFETY: the reference is to 32 readable bytes, and the load asks for no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// The first 32 of `words`, which are whole words of 8 bytes, and zeros for what is missing.
#[inline]
#[target_feature(enable = "avx2")]
fn load_some(words: &[u8]) -> __m256i {
    if let Some(bytes) = words.first_chunk() {
        return load(bytes);
    }
    let word = |at: usize| match words.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(word) => i64::from_le_bytes(*word),
        None => 0,
    };
    match words.first_chunk::<16>() {
        Some(half) => {
            // SAFETY: the reference is to 16 readable bytes, and the load asks for no alignment.
            let low = unsafe { _mm_loadu_si128(half.as_ptr().cast()) };
            let high = _mm256_zextsi128_si256(_mm_cvtsi64_si128(word(16)));
            _mm256_permute2x128_si256::<0x20>(_mm256_zextsi128_si256(low), high)
        }
        None => _mm256_zextsi128_si256(_mm_cvtsi64_si128(word(0))),
    }
}
