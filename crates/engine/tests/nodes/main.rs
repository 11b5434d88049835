//! Several engines on one store: who takes over from whom, what they tell each other, and what holds for all together.

mod losing;
mod rig;
mod sharing;
mod telling;
