//! The functions of expressions, written from the table in docs/expressions.md.

use super::calculate::{self, calculate};
use super::expr::{as_text, equal, order};
use serde_json::{Number, Value, json};
use std::cmp::Ordering;

/// `None` if an argument has a type that the function does not take.
pub fn call(name: &str, arguments: &[Value]) -> Option<Value> {
    let first = &arguments[0];
    let text = |n: usize| arguments.get(n).and_then(Value::as_str);
    Some(match name {
        "len" => match first {
            Value::String(text) => text.chars().count().into(),
            Value::Array(list) => list.len().into(),
            Value::Object(map) => map.len().into(),
            _ => return None,
        },
        "lower" => text(0)?.to_lowercase().into(),
        "upper" => text(0)?.to_uppercase().into(),
        "trim" => text(0)?.trim().into(),
        "starts_with" => text(0)?.starts_with(text(1)?).into(),
        "ends_with" => text(0)?.ends_with(text(1)?).into(),
        "string" => as_text(first).into(),
        "number" => match first {
            Value::String(text) => serde_json::from_str::<Number>(text.trim()).ok()?.into(),
            number => number.as_number()?.clone().into(),
        },
        "json" => first.to_string().into(),
        "contains" => match first {
            Value::String(whole) => whole.contains(text(1)?).into(),
            Value::Array(list) => list.iter().any(|item| equal(item, &arguments[1])).into(),
            Value::Object(map) => map.contains_key(text(1)?).into(),
            _ => return None,
        },
        "join" => {
            let separator = text(1)?;
            first.as_array()?.iter().map(as_text).collect::<Vec<_>>().join(separator).into()
        }
        "split" if text(1)?.is_empty() => return None,
        "split" => text(0)?.split(text(1)?).map(Value::from).collect(),
        "replace" if text(1)?.is_empty() => return None,
        "replace" => text(0)?.replace(text(1)?, text(2)?).into(),
        "first" => first.as_array()?.first()?.clone(),
        "last" => first.as_array()?.last()?.clone(),
        "keys" => first.as_object()?.keys().cloned().map(Value::from).collect(),
        "values" => first.as_object()?.values().cloned().collect(),
        "merge" => {
            let mut merged = json!({});
            for object in arguments {
                for (key, value) in object.as_object()? {
                    merged[key] = value.clone();
                }
            }
            merged
        }
        "unique" => {
            let mut kept: Vec<Value> = Vec::new();
            for item in first.as_array()? {
                if !kept.iter().any(|other| equal(other, item)) {
                    kept.push(item.clone());
                }
            }
            kept.into()
        }
        "sum" => {
            let add = |sum: Value, item: &Value| calculate("+", &sum, item);
            first.as_array()?.iter().try_fold(json!(0), add)?
        }
        "min" | "max" => extreme(name, arguments)?,
        "sort" => sorted(first.as_array()?, text(1))?,
        "slice" => sliced(first, arguments)?,
        "round" => calculate::round(first, arguments.get(1).map_or(Some(0), Value::as_u64)? as u32)?,
        "floor" => calculate::floor(first)?,
        "ceil" => calculate("-", &json!(0), &calculate::floor(&calculate("-", &json!(0), first)?)?)?,
        "abs" if order(first, &json!(0)) == Some(Ordering::Less) => calculate("-", &json!(0), first)?,
        "abs" => Value::Number(first.as_number()?.clone()),
        "base64" => base64(as_text(first).as_bytes()).into(),
        "sha256" => sha256(as_text(first).as_bytes()).into(),
        "raw" => first.clone(),
        "urlencode" => urlencode(&as_text(first)).into(),
        "date" => date(arguments)?.into(),
        name => panic!("the reference does not know the function {name:?}"),
    })
}

fn extreme(name: &str, arguments: &[Value]) -> Option<Value> {
    let numbers = match arguments {
        [Value::Array(list)] => list.as_slice(),
        arguments => arguments,
    };
    let wanted = if name == "min" { Ordering::Less } else { Ordering::Greater };
    let mut best: Option<&Value> = None;
    for number in numbers {
        number.as_number()?;
        if best.is_none_or(|best| order(number, best) == Some(wanted)) {
            best = Some(number);
        }
    }
    best.cloned()
}

fn sorted(list: &[Value], field: Option<&str>) -> Option<Value> {
    let mut keyed: Vec<(Value, Value)> = Vec::new();
    for item in list {
        let key = match field {
            Some(field) => item.get(field)?.clone(),
            None => item.clone(),
        };
        keyed.push((key, item.clone()));
    }
    let all = |test: fn(&Value) -> bool| keyed.iter().all(|(key, _)| test(key));
    if !all(Value::is_number) && !all(Value::is_string) {
        return None;
    }
    // Insertion, so that equal items keep their order.
    let mut done: Vec<(Value, Value)> = Vec::new();
    for (key, item) in keyed {
        let at = done.iter().position(|(other, _)| order(&key, other) == Some(Ordering::Less)).unwrap_or(done.len());
        done.insert(at, (key, item));
    }
    Some(done.into_iter().map(|(_, item)| item).collect())
}

fn sliced(whole: &Value, arguments: &[Value]) -> Option<Value> {
    let items: Vec<Value> = match whole {
        Value::String(text) => text.chars().map(|c| c.to_string().into()).collect(),
        Value::Array(list) => list.clone(),
        _ => return None,
    };
    let length = items.len() as i64;
    let position = |n: usize, otherwise: i64| match arguments.get(n) {
        Some(Value::Null) if n == 1 => None,
        None | Some(Value::Null) => Some(otherwise),
        Some(number) => {
            let at = number.as_i64()?;
            Some(if at < 0 { (length + at).max(0) } else { at.min(length) })
        }
    };
    let (from, to) = (position(1, 0)?, position(2, length)?);
    let part = items.into_iter().take(to as usize).skip(from as usize);
    Some(match whole {
        Value::String(_) => part.map(|c| as_text(&c)).collect::<String>().into(),
        _ => part.collect(),
    })
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |n: usize| u32::from(chunk.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let shown = digit <= chunk.len();
            let value = (bits >> (18 - 6 * digit)) & 63;
            out.push(if shown { char::from(DIGITS[value as usize]) } else { '=' });
        }
    }
    out
}

/// FIPS 180-4, in hexadecimal.
fn sha256(bytes: &[u8]) -> String {
    let primes: Vec<u32> = (2..312).filter(|n| (2..*n).all(|divisor| n % divisor != 0)).collect();
    // The first 32 bits of the fractions of their roots.
    let fraction = |root: f64| (root.fract() * 2f64.powi(32)) as u32;
    let rounds: Vec<u32> = primes[..64].iter().map(|prime| fraction(f64::from(*prime).cbrt())).collect();
    let mut hash: Vec<u32> = primes[..8].iter().map(|prime| fraction(f64::from(*prime).sqrt())).collect();
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((8 * bytes.len() as u64).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut words: Vec<u32> =
            block.chunks_exact(4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]])).collect();
        for n in 16..64 {
            let mix = |word: u32, turns: [u32; 2], shift| {
                word.rotate_right(turns[0]) ^ word.rotate_right(turns[1]) ^ word >> shift
            };
            let (older, newer) = (mix(words[n - 15], [7, 18], 3), mix(words[n - 2], [17, 19], 10));
            words.push(words[n - 16].wrapping_add(older).wrapping_add(words[n - 7]).wrapping_add(newer));
        }
        let mut state = hash.clone();
        for n in 0..64 {
            let (a, e) = (state[0], state[4]);
            let choice = e & state[5] ^ !e & state[6];
            let majority = a & state[1] ^ a & state[2] ^ state[1] & state[2];
            let turned = |word: u32, turns: [u32; 3]| turns.iter().fold(0, |all, turn| all ^ word.rotate_right(*turn));
            let added = [turned(e, [6, 11, 25]), choice, rounds[n], words[n]];
            let first = added.iter().fold(state[7], |sum, part| sum.wrapping_add(*part));
            state.rotate_right(1);
            state[4] = state[4].wrapping_add(first);
            state[0] = first.wrapping_add(turned(a, [2, 13, 22])).wrapping_add(majority);
        }
        hash.iter_mut().zip(state).for_each(|(word, by)| *word = word.wrapping_add(by));
    }
    hash.iter().map(|word| format!("{word:08x}")).collect()
}

fn urlencode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// `date(time, add, format, zone)` with a whole number of days, hours or minutes, as the generated expressions call it.
fn date(arguments: &[Value]) -> Option<String> {
    const DAY: i64 = 86_400_000;
    let text = |n: usize| arguments.get(n).and_then(Value::as_str);
    let offset = match text(3) {
        None => 0,
        Some("Etc/GMT-9") => 9 * 3_600_000,
        Some(zone) => panic!("the reference does not know the zone {zone:?}"),
    };
    let millis = match &arguments[0] {
        Value::Number(millis) => millis.as_i64()?,
        time => instant(time.as_str()?, offset)?,
    };
    let add = text(1).unwrap_or("0d");
    let unit = match &add[add.len() - 1..] {
        "d" => DAY,
        "h" => 3_600_000,
        _ => 60_000,
    };
    let local = millis + unit * add[..add.len() - 1].parse::<i64>().ok()? + offset;
    let (mut year, mut month, mut rest) = (1970, 1, local.div_euclid(DAY));
    let of_day = local.rem_euclid(DAY);
    // Times are in the years -9999 to 9999.
    const BEFORE_1970: i64 = 11_968 * 365;
    if rest > days_from(9999, 12, 30) || rest < -BEFORE_1970 {
        return None;
    }
    while rest < 0 {
        year -= 1;
        rest += year_days(year);
    }
    while rest >= year_days(year) {
        rest -= year_days(year);
        year += 1;
    }
    while rest >= month_days(year, month) {
        rest -= month_days(year, month);
        month += 1;
    }
    let day = format!("{year:04}-{month:02}-{:02}", rest + 1);
    let minute = format!("{:02}:{:02}", of_day / 3_600_000, of_day / 60_000 % 60);
    Some(match text(2) {
        Some("%Y-%m-%d") => day,
        Some("%H:%M") => minute,
        Some(format) => panic!("the reference does not know the format {format:?}"),
        None => {
            let second = format!("{:02}.{:03}", of_day / 1000 % 60, of_day % 1000);
            format!("{day}T{minute}:{second}{}", if offset == 0 { "Z" } else { "+09:00" })
        }
    })
}

/// Milliseconds of a date, or of a time with milliseconds. Without a `Z` it is local.
fn instant(text: &str, offset: i64) -> Option<i64> {
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let days = days_from(part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let of_day = match text.len() > 10 {
        true => (part(11, 13)? * 60 + part(14, 16)?) * 60_000 + part(17, 19)? * 1000 + part(20, 23)?,
        false => 0,
    };
    let offset = if text.ends_with(['Z', 'z']) { 0 } else { offset };
    Some(days * 86_400_000 + of_day - offset)
}

fn days_from(year: i64, month: i64, day: i64) -> i64 {
    let years: i64 = (1970..year).map(year_days).sum();
    let months: i64 = (1..month).map(|month| month_days(year, month)).sum();
    years + months + day - 1
}

fn year_days(year: i64) -> i64 {
    (1..=12).map(|month| month_days(year, month)).sum()
}

fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
