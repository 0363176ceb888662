mod circumstances;
mod cron;
mod declaring;
mod running;
mod single_runs;
